// The daemon's flags, which override the configuration file.
#ifndef KILN_SERVER_CONFIG_FLAGS_H_
#define KILN_SERVER_CONFIG_FLAGS_H_

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace kiln::config {

// Parses the command line (terminating the process on --help and on unknown flags), then the file
// given by --config, and checks the result. `user_id` is the process's own.
absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_FLAGS_H_
