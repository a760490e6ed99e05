// The kernels that a layer becomes.
#ifndef KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_
#define KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/full_size/layer.h"

namespace kiln::full_size {

// Their canonical texts, in the order in which they run; equal ones stand there as often as they
// run.
absl::StatusOr<std::vector<std::string>> KernelsOf(const graph::Graph& graph);

struct SizeLimits {
  int64_t points = int64_t{1} << 62;    // of all loops of a kernel
  int64_t elements = int64_t{1} << 62;  // of a buffer
};
struct SizedKernels {
  int64_t batch = 1;
  bool fits = true;  // with this batch; false: not even with one of 1
  std::vector<std::string> kernels;
};
// As MakeGraph of the batch, or of the largest below it with which all kernels are within limits.
absl::StatusOr<SizedKernels> KernelsWithin(const Layer& layer, int64_t batch, ir::DType dtype,
                                           const SizeLimits& limits);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LAYER_KERNELS_H_
