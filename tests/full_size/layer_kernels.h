// The kernels that a layer is compiled to.
#ifndef KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_
#define KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/full_size/layer.h"

namespace kiln::full_size {

// Returns their canonical texts, in execution order; equal kernels occur as often as they run.
absl::StatusOr<std::vector<std::string>> KernelsOf(const graph::Graph& graph);

struct SizeLimits {
  int64_t points = int64_t{1} << 62;    // of all loops of a kernel
  int64_t elements = int64_t{1} << 62;  // of a buffer
};
struct SizedKernels {
  int64_t batch = 1;
  bool fits = true;  // false: the kernels exceed the limits even with a batch of 1
  std::vector<std::string> kernels;
};
// Uses MakeGraph with the batch, or with the largest smaller one for which all kernels are within
// limits.
absl::StatusOr<SizedKernels> KernelsWithin(const Layer& layer, int64_t batch, ir::DType dtype,
                                           const SizeLimits& limits);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_
