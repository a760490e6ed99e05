// Graphs and kernels compiled to PTX, and run by its interpreter (tests/stand_ins/cuda/ptx).
#ifndef KILN_TESTS_NUMERICS_RUN_PTX_H_
#define KILN_TESTS_NUMERICS_RUN_PTX_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// A small GPU: sm_80 unless another generation is named, with the version of PTX that knows it.
drivers::Target PtxTarget(const char* processor = "sm_80", const char* features = "+ptx78");

absl::StatusOr<drivers::KernelImage> CompileToPtx(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  const drivers::Target& target);

// INTERNAL: what CompileKernel says, or the interpreter: it does not know an instruction, or a
// thread raced with another one, waited for ever or touched what is not the kernel's.
absl::Status RunOnPtx(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                      absl::Span<ops::HostTensor* const> globals);

// The graph through all passes, kernel by kernel, with the schedules that the compiler chooses.
// Outputs of requests for gradients come with it.
absl::StatusOr<kernel::PartitionResults> RunOnPtx(const graph::Graph& graph,
                                                  absl::Span<const ops::HostTensor> inputs);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_PTX_H_
