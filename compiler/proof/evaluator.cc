#include "compiler/proof/evaluator.h"

#include <utility>

namespace kiln::proof {
namespace {

using ir::Node;
using ir::Op;

// Operands before their users; below reductions nothing.
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

Evaluator::Step Evaluator::MakeStep(const Node* node,
                                    const absl::flat_hash_map<const Node*, int>& numbers) {
  Step step;
  step.node = node;
  switch (node->op()) {
    case Op::kConst:
      step.number = OfConstant(node);
      return step;
    case Op::kRange:
      step.number = SlotOf(node);
      return step;
    case Op::kReduce:
      return step;
    case Op::kLoad:
      step.number = node->attr<ir::IntAttr>().value;
      break;
    default:
      break;
  }
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
    made.steps.push_back(MakeStep(node, numbers));
    numbers.emplace(node, static_cast<int>(numbers.size()));
  }
  made.values.resize(made.steps.size());
  return made;
}

Value Evaluator::Evaluate(const Node* root) {
  if (root->op() == Op::kConst) return OfConstant(root);
  Tape& tape = TapeOf(root);
  for (size_t i = 0; i < tape.steps.size(); ++i) tape.values[i] = Run(tape.steps[i], tape);
  return tape.values.back();
}

Value Evaluator::Run(const Step& step, const Tape& tape) {
  const Node* node = step.node;
  switch (node->op()) {
    case Op::kConst:
      return step.number;
    case Op::kRange:
      return environment_[step.number];
    case Op::kReduce:
      return Reduce(node);
    case Op::kLoad:
      if (step.count > 1 && tape.values[step.operands[1]] == 0) return 0;
      return Load(static_cast<int>(step.number), node->dtype(), tape.values[step.operands[0]]);
    default:
      break;
  }
  Value operands[3];
  for (int i = 0; i < step.count; ++i) operands[i] = tape.values[step.operands[i]];
  const ir::DType operand = step.count > 0 ? node->operand(0)->dtype() : node->dtype();
  return Apply(node->op(), node->dtype(), operand, operands, step.count);
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
