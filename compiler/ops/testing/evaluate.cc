#include "compiler/ops/testing/evaluate.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/op_def.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;

struct Value {
  HostTensor tensor;
  int64_t uses_left = 0;
};
using Values = absl::flat_hash_map<const Node*, Value>;

absl::StatusOr<HostTensor> EvaluateInput(const Node* node, absl::Span<const HostTensor> inputs) {
  const int64_t index = node->attr<ir::InputAttr>().index;
  if (index < 0 || index >= static_cast<int64_t>(inputs.size())) {
    return absl::InvalidArgumentError(StrCat("input ", index, " has no value"));
  }
  const HostTensor& value = inputs[index];
  if (value.dtype != node->dtype() || value.shape != node->shape()) {
    return absl::InvalidArgumentError(
        StrCat("the value of input ", index, " is ", ir::Name(value.dtype), ToString(value.shape),
               "; it must be ", ir::Name(node->dtype()), ToString(node->shape())));
  }
  const int64_t wanted = value.size() * ir::SizeOf(value.dtype);
  if (static_cast<int64_t>(value.bytes.size()) != wanted) {
    return absl::InvalidArgumentError(StrCat("the value of input ", index, " has ",
                                             value.bytes.size(), " bytes; it must have ", wanted));
  }
  return value;
}

absl::StatusOr<HostTensor> EvaluateNode(const Node* node, Values& values,
                                        absl::Span<const HostTensor> inputs) {
  if (node->op() == Op::kInput) return EvaluateInput(node, inputs);
  // kMutable, which partition adds, has no row: its value is its operand's.
  if (node->op() == ir::Op::kMutable) return values.at(node->operand(0)).tensor;
  const EvaluateFn evaluate = DefOf(node->op()).evaluate;
  if (evaluate == nullptr) {
    return absl::InvalidArgumentError(StrCat(ir::Name(node->op()), " has no value of its own"));
  }
  std::vector<const HostTensor*> operands;
  for (const Node* operand : node->operands()) operands.push_back(&values.at(operand).tensor);
  return evaluate(node, operands);
}

void Release(const Node* node, Values& values) {
  for (const Node* operand : node->operands()) {
    Value& value = values.at(operand);
    if (--value.uses_left == 0) value.tensor.bytes = {};
  }
}

}  // namespace

absl::StatusOr<std::vector<HostTensor>> Evaluate(absl::Span<const Node* const> roots,
                                                 absl::Span<const HostTensor> inputs) {
  const std::vector<const Node*> order = ir::TopologicalOrder(roots);
  Values values;
  values.reserve(order.size());
  for (const Node* node : order) {
    for (const Node* operand : node->operands()) ++values[operand].uses_left;
  }
  // One additional use, so that no result is dropped.
  for (const Node* root : roots) ++values[root].uses_left;
  for (const Node* node : order) {
    auto result = EvaluateNode(node, values, inputs);
    if (!result.ok()) return result.status();
    values.at(node).tensor = *std::move(result);
    Release(node, values);
  }
  std::vector<HostTensor> results;
  for (const Node* root : roots) results.push_back(values.at(root).tensor);
  return results;
}

}  // namespace kiln::ops
