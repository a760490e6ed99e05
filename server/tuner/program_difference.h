// The kernels in which two programs of one graph differ, because other values share kernels.
#ifndef KILN_SERVER_TUNER_PROGRAM_DIFFERENCE_H_
#define KILN_SERVER_TUNER_PROGRAM_DIFFERENCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "compiler/kernel/kernel.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// The values that kernels of one program compute and the other program has not, and the reverse:
// two ways from the same inputs to the same results. Values between them belong to one way.
struct ProgramDifference {
  // For the runner of both: the buffers of all values that a kernel of them reads or writes. It has
  // no loops that run.
  kernel::Kernel kernel;
  std::vector<TrialStep> before, after;
  // The same buffers, of which those that both write count as outputs.
  kernel::Kernel compared;
  // The relative difference up to which floats are equal: the sum of the tolerances of the kernels
  // of `before`, since each may read what the one before it has rounded.
  double tolerance = 0;

  bool empty() const { return before.empty() && after.empty(); }
};

// Requires: both are compiled for one device, without a mesh. `context` gets the nodes of the
// kernels, and outlives the result. UNIMPLEMENTED: a kernel changes a part of a value that is not
// made there, so that it cannot be repeated.
absl::StatusOr<ProgramDifference> DifferenceOf(const compiler::CompiledProgram& before,
                                               const compiler::CompiledProgram& after,
                                               ir::Context& context);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_PROGRAM_DIFFERENCE_H_
