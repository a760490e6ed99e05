// Graphs and kernels printed as OpenCL C and run by this machine's OpenCL device.
#ifndef KILN_TESTS_NUMERICS_RUN_OPENCL_H_
#define KILN_TESTS_NUMERICS_RUN_OPENCL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/testing/opencl_runner.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/schedule/schedule.h"

namespace kiln::numerics {

// Opened by the first call. The errors of OpenClRunner::Open.
const absl::StatusOr<std::unique_ptr<codegen::OpenClRunner>>& OpenCl();

// UNIMPLEMENTED: the checks of c_source.h refuse the kernel or its schedule. INTERNAL: the loops
// are not the kernel, or what OpenClRunner::Run says.
absl::Status RunOnOpenCl(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                         absl::Span<ops::HostTensor* const> globals);

enum class Scheduled {
  kThreads,   // as for OpenCL's devices
  kAsForCpu,  // wherever that fits OpenCL's private memory
};

// The graph through all passes, kernel by kernel. Outputs of requests for gradients come with it.
absl::StatusOr<kernel::PartitionResults> RunOnOpenCl(const graph::Graph& graph,
                                                     absl::Span<const ops::HostTensor> inputs,
                                                     Scheduled scheduled);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_OPENCL_H_
