#include "compiler/ops/build.h"

#include <limits>
#include <utility>

#include "compiler/ir/dtype.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/round.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/scatter_mode.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;
using NodeOr = absl::StatusOr<const Node*>;

// A node whose description has passed all checks.
struct Checked {
  const OpDef& op;
  std::vector<const Node*> operands;  // promoted
  const Attributes& attributes;
  Shape shape;
  DType dtype;
};

std::vector<int64_t> NormalAxes(const Checked& node) {
  return NormalizeAxes(IntsOf(node.attributes, "axes"), node.operands[0]->shape().size()).value();
}

// Makes the constant exactly; fails if the dtype cannot hold it.
absl::StatusOr<const Node*> MakeConst(Builder& builder, const Checked& node) {
  const AttributeValue& value = node.attributes.at("value");
  if (const bool* truth = std::get_if<bool>(&value)) {
    return builder.BroadcastTo(builder.ConstInt(node.dtype, *truth ? 1 : 0), node.shape);
  }
  if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    // An unsigned 64-bit value is sent as the signed one with the same bits.
    const bool fits = ir::IsFloat(node.dtype) || node.dtype == DType::kUInt64 ||
                      WrapToInteger(node.dtype, *integer) == *integer;
    if (!fits) {
      return absl::InvalidArgumentError(
          StrCat("the constant ", *integer, " does not fit ", ir::Name(node.dtype)));
    }
    return builder.BroadcastTo(builder.ConstInt(node.dtype, *integer), node.shape);
  }
  const double number = std::get<double>(value);
  if (!ir::IsFloat(node.dtype)) {
    return absl::InvalidArgumentError(StrCat("the constant ", number, " is a float; ",
                                             ir::Name(node.dtype), " needs an integer"));
  }
  return builder.Full(node.dtype, node.shape, number);
}

NodeOr MakeInput(Builder& builder, const Checked& node) {
  const int64_t index = IntOf(node.attributes, "index");
  if (index < 0 || index > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(StrCat("the input's index ", index, " must count from 0"));
  }
  return builder.Input(index, node.dtype, node.shape);
}

NodeOr MakeIota(Builder& builder, const Checked& node) {
  const auto axis = NormalizeAxis(IntOf(node.attributes, "axis"), node.shape.size());
  return builder.Iota(node.dtype, node.shape, axis.value());
}

NodeOr MakeSource(Builder& builder, const Checked& node) {
  if (node.op.op == Op::kConst) return MakeConst(builder, node);
  if (node.op.op == Op::kInput) return MakeInput(builder, node);
  return MakeIota(builder, node);
}

// Casts to float8 with saturation: values beyond its largest number become that number. The
// gradient passes as if there were no saturation. Short floats and integers are compared as
// float32: the largest number need not be whole, and integers that float32 rounds are beyond it.
const Node* SaturatingCast(Builder& builder, const Node* x, DType dtype) {
  const bool is_differentiable = ir::IsFloat(x->dtype());
  if (!ir::IsFloat(x->dtype()) || ir::IsShortFloat(x->dtype()))
    x = builder.Cast(x, DType::kFloat32);
  const double largest = ir::FormatOf(dtype).largest();
  const Node* value_max = builder.Const(x->dtype(), largest);
  const Node* value_min = builder.Const(x->dtype(), -largest);
  const Node* held = builder.Binary(Op::kMin, builder.Binary(Op::kMax, x, value_min), value_max);
  if (is_differentiable) {
    held = builder.WithDerivative(builder.Detach(held), x, builder.Const(x->dtype(), 1));
  }
  return builder.Cast(held, dtype);
}

NodeOr MakeUnary(Builder& builder, const Checked& node) {
  if (node.op.op == Op::kCast) {
    // Bools are 0 and 1, so they never saturate.
    const bool saturates = ir::IsFloat8(node.dtype) && node.operands[0]->dtype() != DType::kBool &&
                           BoolOf(node.attributes, "saturate");
    return saturates ? SaturatingCast(builder, node.operands[0], node.dtype)
                     : builder.Cast(node.operands[0], node.dtype);
  }
  if (node.op.op == Op::kBitcast) return builder.Bitcast(node.operands[0], node.dtype);
  const bool is_whole = !ir::IsFloat(node.operands[0]->dtype());
  if (node.op.op == Op::kTrunc && is_whole) return node.operands[0];
  return builder.Unary(node.op.op, node.operands[0]);
}

NodeOr MakeMovement(Builder& builder, const Checked& node) {
  const Node* x = node.operands[0];
  const Attributes& attributes = node.attributes;
  switch (node.op.op) {
    case Op::kReshape:
      return builder.Reshape(x, node.shape);
    case Op::kExpand:
      return builder.BroadcastTo(x, node.shape);
    case Op::kPermute:
      return builder.Permute(x, IntsOf(attributes, "axes"));
    case Op::kPad:
      return builder.Pad(x, IntsOf(attributes, "padding"));
    case Op::kShrink:
      return builder.Shrink(x, IntsOf(attributes, "bounds"));
    case Op::kFlip:
      return builder.Flip(x, NormalAxes(node));
    case Op::kWindow:
      return builder.Window(x, IntOf(attributes, "axis"), IntOf(attributes, "size"),
                            IntOf(attributes, "stride"), IntOf(attributes, "dilation"));
    case Op::kUnwindow:
      return builder.Unwindow(x, IntOf(attributes, "axis"), IntOf(attributes, "length"),
                              IntOf(attributes, "stride"), IntOf(attributes, "dilation"));
    default:
      return absl::InternalError(StrCat("no movement named ", node.op.name));
  }
}

NodeOr MakeIndexed(Builder& builder, const Checked& node) {
  const std::vector<const Node*>& operands = node.operands;
  const int64_t axis = IntOf(node.attributes, "axis");
  if (node.op.op == Op::kGatherElements) {
    return builder.GatherElements(operands[0], operands[1], axis);
  }
  return builder.ScatterElements(operands[0], operands[1], operands[2], axis,
                                 ScatterModeOf(node.attributes));
}

NodeOr MakeShard(Builder& builder, const Checked& node) {
  const Node* x = node.operands[0];
  const std::vector<int64_t>& spec = IntsOf(node.attributes, "spec");
  if (!ir::IsSpec(spec, x->shape().size())) {
    return absl::InvalidArgumentError(
        StrCat("\"spec\" ", ToString(spec), " for shape ", ToString(x->shape()),
               "; it needs for each dimension the number of the mesh's axes that split it, then "
               "these axes, each once"));
  }
  return builder.Shard(x, spec);
}

NodeOr MakeStructure(Builder& builder, const Checked& node) {
  if (node.op.op == Op::kShard) return MakeShard(builder, node);
  if (node.op.op == Op::kSend) {
    return builder.Send(node.operands[0], IntOf(node.attributes, "source"),
                        IntOf(node.attributes, "target"));
  }
  if (node.op.op == Op::kWithDerivative) {
    return builder.WithDerivative(node.operands[0], node.operands[1], node.operands[2]);
  }
  if (node.op.op != Op::kGradient) return builder.Unary(node.op.op, node.operands[0]);
  return builder.context().Get(Op::kGradient, node.dtype, node.shape, node.operands);
}

// Returns whether the composite only moves and selects values: a composite that maps bool to bool
// does no arithmetic.
bool MovesOnly(const OpDef& op) {
  const bool keeps = op.dtype_rule == DTypeRule::kSame || op.dtype_rule == DTypeRule::kPromote;
  return keeps && op.operand_class == DTypeClass::kAny;
}

// For float16 and bfloat16 a composite is computed in float32 and its result rounded once: rounding
// every node of the expansion would lose digits.
NodeOr MakeComposite(Builder& builder, const Checked& node) {
  if (MovesOnly(node.op)) return node.op.expand(builder, node.operands, node.attributes);
  std::vector<const Node*> operands;
  for (const Node* operand : node.operands) {
    const bool is_short = ir::IsShortFloat(operand->dtype());
    const bool widens = is_short && !node.op.casts_operands;
    operands.push_back(widens ? builder.Cast(operand, DType::kFloat32) : operand);
  }
  const NodeOr made = node.op.expand(builder, operands, node.attributes);
  if (!made.ok() || !ir::IsShortFloat(node.dtype)) return made;
  return builder.Cast(*made, node.dtype);
}

NodeOr Make(Builder& builder, const Checked& node) {
  switch (node.op.kind) {
    case Kind::kSource:
      return MakeSource(builder, node);
    case Kind::kUnary:
      return MakeUnary(builder, node);
    case Kind::kBinary:
      return builder.Binary(node.op.op, node.operands[0], node.operands[1]);
    case Kind::kTernary:
      return builder.Where(node.operands[0], node.operands[1], node.operands[2]);
    case Kind::kReduce:
      return builder.Reduce(node.op.op, node.operands[0], NormalAxes(node),
                            BoolOf(node.attributes, "keepdims"));
    case Kind::kMovement:
      return MakeMovement(builder, node);
    case Kind::kIndexed:
      return MakeIndexed(builder, node);
    case Kind::kStructure:
      return MakeStructure(builder, node);
    case Kind::kComposite:
      return MakeComposite(builder, node);
  }
  return absl::InternalError("unknown kind of op");
}

// Checks that the expansion has the shape and dtype that the row promises.
absl::Status CheckMade(const Checked& node, const Node* made) {
  if (made->shape() == node.shape && made->dtype() == node.dtype) return absl::OkStatus();
  return absl::InternalError(StrCat("\"", node.op.name, "\" became ", ir::Name(made->dtype()),
                                    ToString(made->shape()), ", its row says ",
                                    ir::Name(node.dtype), ToString(node.shape)));
}

}  // namespace

NodeOr Build(Builder& builder, const OpDef& op, absl::Span<const Node* const> operands,
             const Attributes& attributes, const Shape& shape, DType dtype) {
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  for (const Node* operand : operands) {
    shapes.push_back(operand->shape());
    dtypes.push_back(operand->dtype());
  }
  const absl::Status holds = CheckConstraints({op, shapes, attributes, dtypes, shape, dtype});
  if (!holds.ok()) return holds;

  Checked node{op, {operands.begin(), operands.end()}, attributes, shape, dtype};
  const DType cast_to = OperandDType(op, dtypes);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    // Special operands, such as indices and conditions, take no part in promotion.
    const bool stays = cast_to == DType::kInvalid || IsSpecial(op, i);
    if (!stays) node.operands[i] = builder.Cast(node.operands[i], cast_to);
  }
  const NodeOr made = Make(builder, node);
  if (!made.ok()) return made;
  // An expansion may make a tensor larger than its operands and its result.
  if (!builder.status().ok()) return builder.status();
  const absl::Status kept = CheckMade(node, *made);
  if (!kept.ok()) return kept;
  return made;
}

}  // namespace kiln::ops
