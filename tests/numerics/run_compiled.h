// A graph compiled for this machine's processor and run by the CPU driver.
#ifndef KILN_TESTS_NUMERICS_RUN_COMPILED_H_
#define KILN_TESTS_NUMERICS_RUN_COMPILED_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "drivers/interface/device.h"

namespace kiln::numerics {

// A CPU device with two threads.
std::unique_ptr<drivers::Device> OpenCpu();

// The graph's outputs. `inputs` are by index, each of its input's shape and dtype.
absl::StatusOr<std::vector<ops::HostTensor>> RunCompiled(drivers::Device& device,
                                                         const graph::Graph& graph,
                                                         absl::Span<const ops::HostTensor> inputs);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_COMPILED_H_
