// The part of `kiln tune` that searches.
#ifndef KILN_CLIENTS_CLI_TUNE_PROGRAM_H_
#define KILN_CLIENTS_CLI_TUNE_PROGRAM_H_

#include "absl/status/status.h"
#include "clients/cli/command.h"

namespace kiln::cli {

// Has the daemon tune a program, and shows the progress until it is done.
absl::Status TuneProgram(Invocation& invocation);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TUNE_PROGRAM_H_
