// The daemon's flags, which override the configuration file.
#ifndef KILN_SERVER_CONFIG_FLAGS_H_
#define KILN_SERVER_CONFIG_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace kiln::config {

// The values that the command line and the file that it names say.
struct Loaded {
  Config config;    // with the values that can be understood
  Origins origins;  // of those that are not defaults
  std::vector<std::string>
      problems;  // of all sources; the configuration can be used if it is empty
};

// Parses the command line, then the file given by --config, and checks the result. Reads the file
// at each call, for a daemon that reloads it. `user_id` is the process's own.
//
// A flag is --name=value or --name value. A switch needs no value, and --noname turns it off. A
// list is separated by commas. An empty value is as if the flag was not given.
Loaded Load(int argc, char** argv, const Environment& environment, int user_id);

// Returns its configuration. INVALID_ARGUMENT: its problems, joined.
absl::StatusOr<Config> FromCommandLine(int argc, char** argv, const Environment& environment,
                                       int user_id);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_FLAGS_H_
