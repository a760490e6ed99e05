// kiln status
#ifndef KILN_CLIENTS_CLI_STATUS_H_
#define KILN_CLIENTS_CLI_STATUS_H_

#include <string>

namespace kiln::cli {

// Returns the schema of what `kiln status --json` prints (json.h).
std::string StatusSchema();

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_STATUS_H_
