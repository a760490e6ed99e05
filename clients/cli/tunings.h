// The tunings that run.
#ifndef KILN_CLIENTS_CLI_TUNINGS_H_
#define KILN_CLIENTS_CLI_TUNINGS_H_

#include "absl/status/status.h"
#include "clients/cli/command.h"

namespace kiln::cli {

// kiln tune list
absl::Status ListTunings(Invocation& invocation);
// kiln tune stop ID
absl::Status StopTuning(Invocation& invocation);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TUNINGS_H_
