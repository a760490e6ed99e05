// Graphs and kernels compiled to SPIR-V, and run by the driver for Level Zero on the stand-in for
// its library (tests/stand_ins/level_zero), which has an OpenCL runtime run them.
#ifndef KILN_TESTS_NUMERICS_RUN_SPIRV_H_
#define KILN_TESTS_NUMERICS_RUN_SPIRV_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// A small GPU that has all that SPIR-V can have.
drivers::Target SpirvTarget();

absl::StatusOr<drivers::KernelImage> CompileToSpirv(const kernel::Kernel& kernel,
                                                    const schedule::Schedule& schedule,
                                                    const drivers::Target& target);

// Why nothing can be run here; empty: it can.
std::string WhyNoSpirvRuns();

// INTERNAL: what CompileKernel says, or the driver.
absl::Status RunOnSpirv(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                        absl::Span<ops::HostTensor* const> globals);

// The graph through all passes, kernel by kernel, with the schedules that the compiler chooses.
// Outputs of requests for gradients come with it.
absl::StatusOr<kernel::PartitionResults> RunOnSpirv(const graph::Graph& graph,
                                                    absl::Span<const ops::HostTensor> inputs);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_SPIRV_H_
