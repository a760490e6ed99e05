#include "compiler/ops/testing/build_op.h"

#include <vector>

#include "compiler/ops/attributes.h"
#include "compiler/ops/build.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {

absl::StatusOr<const ir::Node*> BuildOp(Builder& builder, const OpDef& op,
                                        absl::Span<const ir::Node* const> operands,
                                        const Attributes& attributes, ir::DType declared) {
  const auto completed = CompleteAttributes(op, attributes);
  if (!completed.ok()) return completed.status();
  std::vector<ir::Shape> shapes;
  std::vector<ir::DType> dtypes;
  for (const ir::Node* operand : operands) {
    shapes.push_back(operand->shape());
    dtypes.push_back(operand->dtype());
  }
  const auto shape = InferShape(op, shapes, *completed);
  if (!shape.ok()) return shape.status();
  const auto dtype = InferDType(op, dtypes, declared);
  if (!dtype.ok()) return dtype.status();
  return Build(builder, op, operands, *completed, *shape, *dtype);
}

}  // namespace kiln::ops
