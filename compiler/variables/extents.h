// The vocabulary in which graphs at capacity are written: the variables as scalars, true sizes,
// masks, shifted views. Internal to compiler/variables.
#ifndef KILN_COMPILER_VARIABLES_EXTENTS_H_
#define KILN_COMPILER_VARIABLES_EXTENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/ops/builder.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

using Dims = absl::Span<const Affine>;

// Not thread-safe. Nodes named x have the capacity of `dims`, their true shape.
class Extents {
 public:
  // `builder` and `variables` must outlive this; the values are input number `input`.
  Extents(ops::Builder& builder, absl::Span<const graph::Variable> variables, int64_t input);

  int64_t Capacity(const Affine& size) const;
  ir::Shape Capacity(Dims dims) const;

  // A number as an int64 scalar. The variables are held to their bounds, so that index arithmetic
  // on them is proved to be in bounds.
  const ir::Node* Scalar(const Affine& number);
  // A constant whose number the variables decide.
  const ir::Node* Constant(const Formula& formula, ir::DType dtype);

  // The indices along an axis of `rank` dimensions, broadcastable.
  const ir::Node* Index(int64_t capacity, size_t axis, size_t rank);
  // x where it is within its true size along those of `axes` that vary, `fill` beyond.
  const ir::Node* Masked(const ir::Node* x, Dims dims, absl::Span<const int64_t> axes,
                         const ir::Node* fill);
  // y[…, i, …] = x[…, i - offset, …] along one axis, for i in [0, capacity); zero where i - offset
  // is not within x's capacity.
  const ir::Node* Moved(const ir::Node* x, int64_t axis, const Affine& offset, int64_t capacity);
  // Cut, or padded with zeros, along one axis.
  const ir::Node* Resized(const ir::Node* x, int64_t axis, int64_t capacity);

  // Between dimensions at capacity and the row-major order of the true shape, and from one true
  // shape to another of as many elements.
  const ir::Node* FromPacked(const ir::Node* packed, Dims dims);
  const ir::Node* ToPacked(const ir::Node* x, Dims dims);
  const ir::Node* Reshaped(const ir::Node* x, Dims from, Dims to);

 private:
  const ir::Node* Size(const Affine& size);
  const ir::Node* PackedIndex(Dims dims);
  const ir::Node* CapacityIndex(const ir::Node* packed, Dims dims);

  ops::Builder& b_;
  const absl::Span<const graph::Variable> variables_;
  std::vector<const ir::Node*> scalars_;  // by variable
};

// What a reduction over nothing gives.
const ir::Node* Neutral(ops::Builder& builder, ir::Op reduction, ir::DType dtype);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_EXTENTS_H_
