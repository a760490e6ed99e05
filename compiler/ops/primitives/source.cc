// Rows of the sources.
#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {

using ir::Node;
using ir::Op;

absl::StatusOr<HostTensor> EvaluateConst(const Node* node, HostOperands operands) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  // A const node is a scalar: Builder::Full expands it.
  const auto& value = node->attr<ir::ConstValue>();
  if (ir::IsFloat(node->dtype())) {
    result.SetFloat(0, value.AsDouble());
  } else {
    result.SetInt(0, value.AsInt());
  }
  return result;
}

absl::StatusOr<HostTensor> EvaluateIota(const Node* node, HostOperands operands) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const int64_t axis = node->attr<ir::IntAttr>().value;
  const int64_t stride = StridesOf(node->shape())[axis];
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t index = i / stride % node->shape()[axis];
    if (ir::IsFloat(node->dtype())) {
      result.SetFloat(i, static_cast<double>(index));
    } else {
      result.SetInt(i, index);
    }
  }
  return result;
}

constexpr Rule kNumericResultRule = {
    "numeric_result", "",
    R"rule(check dtype.name != "bool": '"{op.name}" of bool; it needs a numeric dtype')rule"};

std::vector<OpDef> SourceOps() {
  return {
      {.name = "const",
       .kind = Kind::kSource,
       .op = Op::kConst,
       .attributes = {{"value", AttributeDef::Type::kNumber, std::nullopt}, OptionalShape()},
       .shape_rule = kAttributeShape,
       .dtype_rule = DTypeRule::kAttribute,
       .evaluate = EvaluateConst,
       .doc = "One value in every element. A float dtype takes any number, an integer one an "
              "integer in range (uint64 the int64 of the same bits)"},
      {.name = "input",
       .kind = Kind::kSource,
       .op = Op::kInput,
       .attributes = {RequiredInt("index"), RequiredShape()},
       .shape_rule = kAttributeShape,
       .dtype_rule = DTypeRule::kAttribute,
       .doc = "A buffer that each run binds; indices count from 0 without gaps"},
      {.name = "iota",
       .kind = Kind::kSource,
       .op = Op::kIota,
       .attributes = {RequiredShape(), OptionalInt("axis", 0)},
       .shape_rule = kAttributeShape,
       .dtype_rule = DTypeRule::kAttribute,
       .constraints = {kAxisOfResultRule, kNumericResultRule},
       .evaluate = EvaluateIota,
       .doc = "Each element's index along axis"},
  };
}

}  // namespace kiln::ops
