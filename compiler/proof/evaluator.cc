#include "compiler/proof/evaluator.h"

#include <utility>

namespace kiln::proof {
namespace {

using ir::Node;
using ir::Op;

// Returns operands before users, without the nodes below reductions. Iterative, since expressions
// may be deep.
std::vector<const Node*> OrderOutsideReductions(const Node* root) {
  std::vector<const Node*> order;
  absl::flat_hash_map<const Node*, bool> done;  // false: being visited
  std::vector<const Node*> stack = {root};
  while (!stack.empty()) {
    const Node* node = stack.back();
    const auto [state, is_new] = done.try_emplace(node, false);
    if (is_new && node->op() != Op::kReduce) {
      for (const Node* operand : node->operands()) {
        if (!done.contains(operand)) stack.push_back(operand);
      }
      continue;
    }
    stack.pop_back();
    if (std::exchange(done[node], true)) continue;
    order.push_back(node);
  }
  return order;
}

}  // namespace

int Evaluator::SlotOf(const Node* range) {
  const auto [slot, is_new] = slots_.try_emplace(range, static_cast<int>(environment_.size()));
  if (is_new) environment_.push_back(0);
  return slot->second;
}

void Evaluator::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

Evaluator::Step Evaluator::MakeStep(const Node* node, int result,
                                    const absl::flat_hash_map<const Node*, int>& numbers) {
  Step step;
  step.op = node->op();
  step.dtype = node->dtype();
  step.operand_dtype = node->operands().empty() ? node->dtype() : node->operand(0)->dtype();
  step.is_index = step.dtype == ir::DType::kInt64 && node->operands().size() == 2;
  step.result = result;
  step.node = node;
  if (step.op == Op::kRange) step.number = SlotOf(node);
  if (step.op == Op::kLoad) step.number = static_cast<int>(node->attr<ir::IntAttr>().value);
  if (step.op == Op::kReduce) return step;
  for (const Node* operand : node->operands()) step.operands[step.count++] = numbers.at(operand);
  return step;
}

Evaluator::Tape& Evaluator::TapeOf(const Node* root) {
  std::unique_ptr<Tape>& tape = tapes_[root];
  if (tape != nullptr) return *tape;
  tape = std::make_unique<Tape>();
  Tape& made = *tape;
  absl::flat_hash_map<const Node*, int> numbers;
  for (const Node* node : OrderOutsideReductions(root)) {
    const int result = static_cast<int>(made.values.size());
    made.values.push_back(node->op() == Op::kConst ? OfConstant(node) : 0);
    if (node->op() != Op::kConst) made.steps.push_back(MakeStep(node, result, numbers));
    numbers.emplace(node, result);
  }
  return made;
}

Value Evaluator::Evaluate(const Node* root) {
  if (root->op() == Op::kConst) return OfConstant(root);
  Tape& tape = TapeOf(root);
  for (const Step& step : tape.steps) tape.values[step.result] = Run(step, tape);
  return tape.values.back();
}

Value Evaluator::Run(const Step& step, const Tape& tape) {
  switch (step.op) {
    case Op::kRange:
      return environment_[step.number];
    case Op::kReduce:
      return Reduce(step.node);
    case Op::kLoad:
      if (step.count > 1 && tape.values[step.operands[1]] == 0) return 0;
      return Load(step.number, step.dtype, tape.values[step.operands[0]]);
    default:
      break;
  }
  // Nearly all steps are sums and products of indices, so these are computed inline.
  if (step.is_index) {
    const auto a = static_cast<uint64_t>(tape.values[step.operands[0]]);
    const auto b = static_cast<uint64_t>(tape.values[step.operands[1]]);
    if (step.op == Op::kAdd) return static_cast<Value>(a + b);
    if (step.op == Op::kMul) return static_cast<Value>(a * b);
  }
  Value operands[3];
  for (int i = 0; i < step.count; ++i) operands[i] = tape.values[step.operands[i]];
  return Apply(step.op, step.dtype, step.operand_dtype, operands, step.count);
}

Value Evaluator::Reduce(const Node* reduce) {
  const ir::ReduceKind kind = reduce->attr<ir::ReduceAttr>().kind;
  Value result = Identity(kind, reduce->dtype());
  ForEachPoint(absl::MakeConstSpan(reduce->operands()).subspan(1), [&] {
    result = Combine(kind, reduce->dtype(), result, Evaluate(reduce->operand(0)));
  });
  return result;
}

}  // namespace kiln::proof
