// The shape rules by family; infer.cc chooses among them. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_
#define KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Everything a rule may look at. Attributes are complete.
struct ShapeQuery {
  const OpDef& op;
  absl::Span<const ir::Shape> operands;
  const Attributes& attributes;
};
using ShapeResult = absl::StatusOr<ir::Shape>;

template <typename... Parts>
absl::Status ShapeError(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

// Movement.
ShapeResult ReshapeShape(const ShapeQuery& query);
ShapeResult PermuteShape(const ShapeQuery& query);
ShapeResult ExpandShape(const ShapeQuery& query);
ShapeResult PadShape(const ShapeQuery& query);
ShapeResult ShrinkShape(const ShapeQuery& query);
ShapeResult FlipShape(const ShapeQuery& query);
ShapeResult WindowShape(const ShapeQuery& query);
ShapeResult UnwindowShape(const ShapeQuery& query);

// Indexed.
ShapeResult GatherElementsShape(const ShapeQuery& query);
ShapeResult ScatterElementsShape(const ShapeQuery& query);
ShapeResult GatherShape(const ShapeQuery& query);
ShapeResult ScatterShape(const ShapeQuery& query);
ShapeResult TakeAlongAxisShape(const ShapeQuery& query);
ShapeResult PutAlongAxisShape(const ShapeQuery& query);
ShapeResult IndexShape(const ShapeQuery& query);
ShapeResult IndexPutShape(const ShapeQuery& query);
ShapeResult OneHotShape(const ShapeQuery& query);

// Composites.
ShapeResult ConcatShape(const ShapeQuery& query);
ShapeResult MatmulShape(const ShapeQuery& query);
ShapeResult LinearShape(const ShapeQuery& query);
ShapeResult AttentionShape(const ShapeQuery& query);

// Windows over spatial dimensions.
ShapeResult ConvShape(const ShapeQuery& query);
ShapeResult ConvTransposeShape(const ShapeQuery& query);
ShapeResult PoolShape(const ShapeQuery& query);
ShapeResult ResizeShape(const ShapeQuery& query);
ShapeResult UnfoldShape(const ShapeQuery& query);
ShapeResult FoldShape(const ShapeQuery& query);
ShapeResult PixelShuffleShape(const ShapeQuery& query);
ShapeResult PixelUnshuffleShape(const ShapeQuery& query);

// Losses, and what else neural networks reduce or halve.
ShapeResult LossShape(const ShapeQuery& query);
ShapeResult LabelLossShape(const ShapeQuery& query);
ShapeResult RowLossShape(const ShapeQuery& query);
ShapeResult PairwiseShape(const ShapeQuery& query);
ShapeResult HalfShape(const ShapeQuery& query);

// Arrays and matrices.
ShapeResult TopKShape(const ShapeQuery& query);
ShapeResult EinsumShape(const ShapeQuery& query);
ShapeResult DiagonalShape(const ShapeQuery& query);
ShapeResult DiagEmbedShape(const ShapeQuery& query);
ShapeResult SolveShape(const ShapeQuery& query);
ShapeResult DeterminantShape(const ShapeQuery& query);
ShapeResult QrShape(const ShapeQuery& query);

// Whether a shape is (…, N, N).
absl::Status CheckSquare(const OpDef& op, const ir::Shape& shape);

// Positions of a window of `size` elements, `dilation` apart, that moves by `stride` over `length`
// elements. INVALID_ARGUMENT when a parameter is not positive or the window does not fit.
absl::StatusOr<int64_t> WindowPositions(int64_t length, int64_t size, int64_t stride,
                                        int64_t dilation);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_SHAPE_RULES_H_
