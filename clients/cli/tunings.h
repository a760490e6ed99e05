// The tunings that run.
#ifndef KILN_CLIENTS_CLI_TUNINGS_H_
#define KILN_CLIENTS_CLI_TUNINGS_H_

#include "absl/status/status.h"
#include "clients/cli/command.h"
#include "clients/cli/table.h"
#include "kiln/v1/program.pb.h"

namespace kiln::cli {

// "1.2 ms (memory)": the least time that the device allows for a launch, and the part of it that is
// the limit; "-" if it is not known.
Cell RooflineCell(const v1::TuneProgramResponse& progress);
// kiln tune list
absl::Status ListTunings(Invocation& invocation);
// kiln tune stop ID
absl::Status StopTuning(Invocation& invocation);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TUNINGS_H_
