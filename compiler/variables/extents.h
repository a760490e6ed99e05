// The operations from which graphs at capacity are built: the variables as scalars, true sizes,
// masks, shifted views. Internal to compiler/variables.
#ifndef KILN_COMPILER_VARIABLES_EXTENTS_H_
#define KILN_COMPILER_VARIABLES_EXTENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/ops/builder.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

using Dims = absl::Span<const Affine>;

// Not thread-safe. Nodes named x have the capacity of `dims`, which is their true shape.
class Extents {
 public:
  // `builder` must outlive this. The variables' values are the input after those of the graph.
  Extents(ops::Builder& builder, const GeneralGraph& general);

  int64_t Capacity(const Affine& size) const;
  ir::Shape Capacity(Dims dims) const;

  // Returns a number as an int64 scalar. The variables are clamped to their bounds, so that index
  // arithmetic with them is provably in bounds.
  const ir::Node* Scalar(const Affine& number);
  // Returns a constant whose number depends on the variables.
  const ir::Node* Constant(const Formula& formula, ir::DType dtype);

  // Returns the indices along an axis of `rank` dimensions, broadcastable.
  const ir::Node* Index(int64_t capacity, size_t axis, size_t rank);
  // Returns x where it is within its true size along those of `axes` that vary, and `fill` beyond.
  const ir::Node* Masked(const ir::Node* x, Dims dims, absl::Span<const int64_t> axes,
                         const ir::Node* fill);
  // y[…, i, …] = x[…, i - offset, …] along one axis, for i in [0, capacity); zero where i - offset
  // is not within x's capacity.
  const ir::Node* Moved(const ir::Node* x, int64_t axis, const Affine& offset, int64_t capacity);
  // Cuts or zero-pads x along one axis.
  const ir::Node* Resized(const ir::Node* x, int64_t axis, int64_t capacity);

  // Convert between dimensions at capacity and the row-major order of the true shape, and between
  // true shapes with the same number of elements.
  const ir::Node* FromPacked(const ir::Node* packed, Dims dims);
  const ir::Node* ToPacked(const ir::Node* x, Dims dims);
  const ir::Node* Reshaped(const ir::Node* x, Dims from, Dims to);

 private:
  const ir::Node* Size(const Affine& size);
  const ir::Node* PackedIndex(Dims dims);
  const ir::Node* CapacityIndex(const ir::Node* packed, Dims dims);

  ops::Builder& b_;
  const std::vector<Derived> derived_;
  const std::vector<graph::Variable> variables_;  // and derived ones
  std::vector<const ir::Node*> scalars_;          // by variable
};

// Returns the result of a reduction over no elements.
const ir::Node* Neutral(ops::Builder& builder, ir::Op reduction, ir::DType dtype);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_EXTENTS_H_
