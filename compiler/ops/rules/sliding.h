// The geometry of windows that slide over the last dimensions of a tensor: convolution, its
// transpose, pooling, unfold and fold. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_RULES_SLIDING_H_
#define KILN_COMPILER_OPS_RULES_SLIDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Every list has one entry for each spatial dimension.
struct Sliding {
  std::vector<int64_t> size, stride, dilation;
  std::vector<int64_t> before, after;  // padding
  std::vector<int64_t> hanging;        // how much of `after` is ceil_mode's
  std::vector<int64_t> positions;      // of the window: the result's sizes

  size_t rank() const { return size.size(); }
  // From a window's first element to its last.
  int64_t reach(size_t i) const { return (size[i] - 1) * dilation[i]; }
};

// How many spatial dimensions the op has: the length of its default "padding".
size_t SpatialRank(const OpDef& op);

// The last `rank` sizes.
ir::Shape SpatialOf(absl::Span<const int64_t> shape, size_t rank);

// Positions of a window of `size` elements, `dilation` apart, that moves by `stride` over `length`
// elements. INVALID_ARGUMENT when a parameter is not positive or the window does not fit.
absl::StatusOr<int64_t> WindowPositions(int64_t length, int64_t size, int64_t stride,
                                        int64_t dilation);

// All of these read "stride", "padding" and, where the op has it, "dilation", and are
// INVALID_ARGUMENT, naming the attribute, where a list has the wrong length or a window does not
// fit. "padding" has one entry a dimension or two, before and after.

// A kernel of these sizes over `spatial`.
absl::StatusOr<Sliding> ConvolutionSliding(absl::Span<const int64_t> spatial,
                                           absl::Span<const int64_t> kernel,
                                           const Attributes& attributes);

// The attribute "kernel" over the last dimensions of `shape`. An empty "stride" is the kernel. With
// "ceil_mode", the last window may hang over the end, as PyTorch's: `after` grows by as much.
absl::StatusOr<Sliding> PoolSliding(absl::Span<const int64_t> shape, const Attributes& attributes);

// The windows that a transposed convolution of `spatial` adds up: `positions` are `spatial`, and
// `lengths` what they cover before padding is cut off.
struct Spreading {
  Sliding windows;
  std::vector<int64_t> lengths;
  std::vector<int64_t> output_padding;
  ir::Shape result;  // the spatial sizes
};
absl::StatusOr<Spreading> TransposedSpreading(absl::Span<const int64_t> spatial,
                                              absl::Span<const int64_t> kernel,
                                              const Attributes& attributes);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_SLIDING_H_
