#include "compiler/ops/bindings/opgen_examples.h"

#include <algorithm>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Shape;

// kiln/ops/_examples.py uses the same dtypes for operands.
DType DTypeFor(DTypeClass dtype_class) {
  switch (dtype_class) {
    case DTypeClass::kInteger:
    case DTypeClass::kIntegerOrBool:
      return DType::kInt64;
    case DTypeClass::kBool:
      return DType::kBool;
    case DTypeClass::kUInt32:
      return DType::kUInt32;
    default:
      return DType::kFloat32;
  }
}

bool IsSmall(const OpExample& example) {
  return std::all_of(example.operands.begin(), example.operands.end(), [](const Shape& shape) {
    const int64_t elements = ir::NumElements(shape);
    return !shape.empty() && elements > 0 && elements <= 2048;
  });
}

bool Takes(const OpDef& op, const OpExample& example) {
  const auto attributes = CompleteAttributes(op, example.attributes);
  if (!attributes.ok()) return false;
  const auto shape = InferShape(op, example.operands, *attributes);
  if (!shape.ok()) return false;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < example.operands.size(); ++i) {
    dtypes.push_back(DTypeFor(IsSpecial(op, i) ? op.special_class : op.operand_class));
  }
  const bool is_declared = op.dtype_rule == DTypeRule::kAttribute;
  const auto dtype = InferDType(op, dtypes, is_declared ? DType::kInt32 : DType::kInvalid);
  return dtype.ok() &&
         CheckConstraints({op, example.operands, *attributes, dtypes, *shape, *dtype}).ok();
}

// Returns a case of an op, possibly another one with the same shape rule, with only the attributes
// that `op` has.
OpExample For(const OpDef& op, OpExample example) {
  absl::erase_if(example.attributes, [&](const auto& given) {
    return std::none_of(op.attributes.begin(), op.attributes.end(),
                        [&](const AttributeDef& known) { return known.name == given.first; });
  });
  return example;
}

}  // namespace

std::optional<OpExample> ExampleOf(const OpDef& op) {
  std::vector<OpExample> own;
  std::vector<OpExample> others;
  for (const ShapeCase& test_case : ShapeCases()) {
    const bool is_alike = FindOp(test_case.op)->shape_rule.name == op.shape_rule.name;
    if (test_case.op == op.name) own.push_back({test_case.operands, test_case.attributes});
    if (is_alike) others.push_back({test_case.operands, test_case.attributes});
  }
  for (const ConstraintCase& test_case : ConstraintCases()) {
    const bool is_alike = FindOp(test_case.op)->shape_rule.name == op.shape_rule.name;
    if (test_case.op == op.name) own.push_back({test_case.operands, test_case.attributes});
    if (is_alike) others.push_back({test_case.operands, test_case.attributes});
  }
  // The op's own cases are preferred.
  own.insert(own.end(), others.begin(), others.end());
  for (const OpExample& candidate : own) {
    OpExample example = For(op, candidate);
    if (IsSmall(example) && Takes(op, example)) return example;
  }
  return std::nullopt;
}

}  // namespace kiln::ops
