// Grafts: apply a case of the table to values of a random graph.
#include <algorithm>
#include <iterator>
#include <memory>

#include "compiler/ops/testing/build_op.h"
#include "tests/numerics/random/generator.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;

namespace {

// Float results with a discontinuity in an operand, so that rounding would show. Their operands
// must be exact, like those of ops with integer or bool results.
constexpr std::string_view kJumping[] = {
    "trunc",
    "floor",
    "ceil",
    "round",
    "sign",
    "floor_divide",
    "mod",
    "remainder",
    "fmod",
    "copysign",
    "nextafter",
    "hardshrink",
    "threshold",
    "atan2",
    "bitcast",
    "poisson_nll_loss",
    "hinge_embedding_loss",
    "cosine_embedding_loss",
};
// Ops that depend on the sign of a zero, which no op except neg, abs and copysign guarantees: the
// maximum of 0 and -0 is either. Their operands must have no zeros unless they are inputs.
constexpr std::string_view kSeesSignOfZero[] = {"copysign", "atan2", "signbit", "bitcast",
                                                "nextafter"};
// Discontinuous or unbounded for a matrix without full rank: operands stay near the case's own
// matrices.
constexpr std::string_view kWantsFullRank[] = {
    "qr", "solve", "inv", "det", "slogdet_sign", "slogdet_logabs", "cholesky", "triangular_solve"};
// The effect of an infinity or NaN is unspecified: the sign of a determinant that is NaN, and the
// padding after the products of a transposed convolution (kernel/expression.h).
constexpr std::string_view kWantsFinite[] = {"slogdet_sign", "conv_transpose1d", "conv_transpose2d",
                                             "conv_transpose3d"};
// Float results with their operands' bits, or sums of them: exact if the operands are.
constexpr std::string_view kExact[] = {
    "neg",
    "abs",
    "relu",
    "relu6",
    "trunc",
    "floor",
    "ceil",
    "round",
    "sign",
    "add",
    "sub",
    "mul",
    "maximum",
    "minimum",
    "where",
    "clip",
    "clamp_min",
    "clamp_max",
    "square",
    "cast",
    "sum",
    "max",
    "min",
    "reshape",
    "permute",
    "expand",
    "pad",
    "shrink",
    "flip",
    "window",
    "unwindow",
    "concat",
    "tril",
    "triu",
    "contiguous",
    "gather",
    "take",
    "gather_elements",
    "scatter",
    "scatter_add",
    "scatter_elements",
    "index",
    "index_put",
    "take_along_axis",
    "put_along_axis",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pad_constant",
    "pad_reflect",
    "pad_replicate",
    "pad_circular",
    "unfold",
    "fold",
    "pixel_shuffle",
    "pixel_unshuffle",
    "sort",
    "topk",
    "diagonal",
    "diag_embed",
    "roll",
    "hardtanh",
    "cumulative_max",
    "cumulative_min",
};

bool IsIn(std::string_view name, absl::Span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool GivesFloats(const ops::OpDef& op, DType declared) {
  switch (op.dtype_rule) {
    case ops::DTypeRule::kBool:
    case ops::DTypeRule::kInt64:
    case ops::DTypeRule::kInt32:
    case ops::DTypeRule::kUInt32:
      return false;
    case ops::DTypeRule::kAttribute:
      return ir::IsFloat(declared);
    default:
      return true;
  }
}

// Returns true if the op accepts these operands, and none is large. Tried outside the graph, so
// that refusals leave no nodes.
bool Takes(const Case& test_case, DType float_dtype) {
  constexpr int64_t kElementsMax = 10'000;
  for (const OperandSpec& spec : test_case.operands) {
    if (ir::NumElements(spec.shape) > kElementsMax) return false;
  }
  const auto graph = MakeGraph(test_case, float_dtype);
  return graph.ok() && ir::NumElements(graph->outputs[0]->shape()) <= kElementsMax;
}

}  // namespace

Value Generator::Graft() {
  const std::vector<Case>& cases = Cases();
  const Case& original = cases[Draw(cases.size())];
  const DType float_dtype = FloatDType();
  Case test_case = Varied(original);
  if (!Takes(test_case, float_dtype)) test_case = original;
  const ops::OpDef& op = *ops::FindOp(test_case.op);
  const bool exact = !GivesFloats(op, test_case.declared) || IsIn(op.name, kJumping);
  std::vector<const Node*> operands;
  bool are_exact = true;
  for (const OperandSpec& spec : test_case.operands) {
    const DType dtype = spec.dtype == DType::kInvalid ? float_dtype : spec.dtype;
    const auto position = static_cast<int>(operands.size());
    const Value operand = IsIn(op.name, kWantsFullRank) ? Near(spec, dtype, position)
                                                        : Fitted(spec, dtype, exact, position);
    if (operand.node == nullptr || (exact && !operand.exact)) return {};
    if (IsIn(op.name, kSeesSignOfZero) && MayHaveZeros(operand.node)) return {};
    if (IsIn(op.name, kWantsFinite) && !IsFinite(operand.node)) return {};
    are_exact = are_exact && operand.exact;
    operands.push_back(operand.node);
  }
  const auto made = ops::BuildOp(builder_, op, operands, test_case.attributes, test_case.declared);
  if (!made.ok()) return {};
  grafted_ = op.name;
  return {Fenced(*made), are_exact && IsIn(op.name, kExact)};
}

bool Generator::MayHaveZeros(const Node* node) {
  return node->op() != ir::Op::kInput && ir::IsFloat(node->dtype()) &&
         (!sensitivity_.Evaluate(node).ok() || sensitivity_.Measure(node).has_zero);
}

bool Generator::IsFinite(const Node* node) {
  return sensitivity_.Evaluate(node).ok() && sensitivity_.Measure(node).not_finite == 0;
}

Case Generator::Varied(Case test_case) {
  // Whole numbers of another dtype, if it can represent them.
  const DType whole = IntegerDType();
  for (OperandSpec& spec : test_case.operands) {
    const bool has_room = spec.high <= 127 && (spec.low >= 0 || ir::IsSigned(whole));
    if (spec.dtype == DType::kInt32 && has_room) spec.dtype = whole;
  }
  switch (Draw(4)) {
    case 0:
      VaryShapes(test_case);
      break;
    case 1:
      VaryAttributes(test_case);
      break;
    default:
      break;
  }
  return test_case;
}

// Adds a dimension to all operands, or changes all dimensions of one size to another size.
void Generator::VaryShapes(Case& test_case) {
  std::vector<int64_t> sizes;
  for (const OperandSpec& spec : test_case.operands) {
    sizes.insert(sizes.end(), spec.shape.begin(), spec.shape.end());
  }
  if (sizes.empty() || Draw(3) == 0) {
    const int64_t more = Between(1, 3);
    for (OperandSpec& spec : test_case.operands) spec.shape.insert(spec.shape.begin(), more);
    return;
  }
  const int64_t old = sizes[Draw(sizes.size())];
  const int64_t other = Draw(3) == 0 ? Between(8, 11) : RandomSize();
  for (OperandSpec& spec : test_case.operands) {
    std::replace(spec.shape.begin(), spec.shape.end(), old, other);
  }
}

void Generator::VaryAttributes(Case& test_case) {
  using Type = ops::AttributeDef::Type;
  const int64_t rank =
      test_case.operands.empty() ? 1 : static_cast<int64_t>(test_case.operands[0].shape.size());
  if (rank == 0) return;
  for (const ops::AttributeDef& attribute : ops::FindOp(test_case.op)->attributes) {
    const std::string name(attribute.name);
    if (attribute.type == Type::kBool && Coin()) test_case.attributes[name] = Coin();
    if (attribute.type == Type::kInt && name == "axis") {
      test_case.attributes[name] = Between(-rank, rank - 1);
    }
    if (attribute.type == Type::kInts && name == "axes") {
      test_case.attributes[name] = std::vector<int64_t>{Between(-rank, rank - 1)};
    }
  }
}

}  // namespace kiln::numerics
