// The geometry of windows that slide over the last dimensions of a tensor: convolution, its
// transpose, pooling, unfold and fold. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_RULES_SLIDING_H_
#define KILN_COMPILER_OPS_RULES_SLIDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Every list has one entry per spatial dimension.
struct Sliding {
  std::vector<int64_t> size, stride, dilation;
  std::vector<int64_t> before, after;  // padding
  std::vector<int64_t> hanging;        // the part of `after` that ceil_mode added
  std::vector<int64_t> positions;      // number of window positions: the result's sizes

  size_t rank() const { return size.size(); }
  // Returns the distance from a window's first element to its last.
  int64_t reach(size_t i) const { return (size[i] - 1) * dilation[i]; }
};

// Returns the number of spatial dimensions of the op: the length of its default "padding".
size_t SpatialRank(const OpDef& op);

// Returns the last `rank` sizes.
ir::Shape SpatialOf(absl::Span<const int64_t> shape, size_t rank);

// Returns the number of positions of a window of `size` elements, `dilation` apart, that moves by
// `stride` over `length` elements. INVALID_ARGUMENT when a parameter is not positive or the window
// does not fit.
absl::StatusOr<int64_t> WindowPositions(int64_t length, int64_t size, int64_t stride,
                                        int64_t dilation);

// The functions below read "stride", "padding" and, if the op has it, "dilation". They return
// INVALID_ARGUMENT, naming the attribute, if a list has the wrong length or a window does not fit.
// "padding" has one entry per dimension or two, before and after.

// A kernel of these sizes over `spatial`.
absl::StatusOr<Sliding> ConvolutionSliding(absl::Span<const int64_t> spatial,
                                           absl::Span<const int64_t> kernel,
                                           const Attributes& attributes);

// The attribute "kernel" over the last dimensions of `shape`. An empty "stride" means the kernel.
// With "ceil_mode", the last window may extend past the end, like PyTorch's: `after` grows by that
// much.
absl::StatusOr<Sliding> PoolSliding(absl::Span<const int64_t> shape, const Attributes& attributes);

// The windows whose contributions a transposed convolution of `spatial` adds up: `positions` are
// `spatial`, and `lengths` is the extent they cover before padding is cropped.
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
