// The daemon's flags, which override the configuration file.
#ifndef KILN_SERVER_CONFIG_FLAGS_H_
#define KILN_SERVER_CONFIG_FLAGS_H_

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace kiln::config {

// Parses the command line, then the file given by --config, and checks the result. --help prints
// the flags and ends the process. `user_id` is the process's own.
//
// A flag is --name=value or --name value. A switch needs no value, and --noname turns it off. A
// list is separated by commas. An empty value is as if the flag was not given.
absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_FLAGS_H_
