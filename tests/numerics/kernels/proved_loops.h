// Prepares graphs and kernels as loops that the host can run.
#ifndef KILN_TESTS_NUMERICS_KERNELS_PROVED_LOOPS_H_
#define KILN_TESTS_NUMERICS_KERNELS_PROVED_LOOPS_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/kernel.h"
#include "compiler/pipeline.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// Returns the graph after all passes, each of which was verified.
absl::StatusOr<compiler::PassState> Passes(const graph::Graph& graph,
                                           const drivers::Target& target);

// Returns the schedule's loops, proved to compute what the kernel says, and synchronized for
// `shuffling` neighbouring threads that exchange values directly.
absl::StatusOr<schedule::LoopProgram> ProvedLoops(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  int shuffling = 1);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_KERNELS_PROVED_LOOPS_H_
