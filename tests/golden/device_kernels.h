// Kernels for tests of schedules: those of known and of random graphs, as a device gets them.
#ifndef KILN_TESTS_GOLDEN_DEVICE_KERNELS_H_
#define KILN_TESTS_GOLDEN_DEVICE_KERNELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/kernel.h"
#include "drivers/interface/target.h"
#include "tests/golden/devices.h"

namespace kiln::golden {

// Kernels' nodes are in `context`.
//
// The known graphs, and contractions large enough for panels,
// tiles and matrix units.
absl::StatusOr<std::vector<kernel::Kernel>> KnownKernels(const DescribedDevice& device,
                                                         ir::Context& context);
// The kernels of a graph that needs nothing but normalizing: differentiated, widened, simplified.
absl::StatusOr<std::vector<kernel::Kernel>> KernelsOf(const graph::Graph& graph,
                                                      const drivers::Target& target,
                                                      ir::Context& context);
absl::StatusOr<std::vector<kernel::Kernel>> RandomKernels(uint64_t seed,
                                                          const DescribedDevice& device,
                                                          ir::Context& context);

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_DEVICE_KERNELS_H_
