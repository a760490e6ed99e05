#include "tests/numerics/kernels/planted_faults.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/testing/substitute.h"
#include "compiler/ir/walk.h"

namespace kiln::numerics {
namespace {

using ir::Context;
using ir::Node;
using ir::Op;
using schedule::Branch;
using schedule::Loop;
using schedule::LoopProgram;
using schedule::Statement;
using schedule::Store;
using Body = std::vector<Statement>;

const Node* Int(Context& context, int64_t value) {
  return context.Get(Op::kConst, ir::DType::kInt64, {}, {}, ir::ConstValue::Int(value));
}
const Node* Plus(Context& context, const Node* node, int64_t more) {
  return context.Get(Op::kAdd, ir::DType::kInt64, {}, {node, Int(context, more)});
}
const Node* Not(Context& context, const Node* node) {
  return context.Get(Op::kNot, ir::DType::kBool, {}, {node});
}

// A fault in one node: a node that replaces it.
struct Replacement {
  std::string what;
  const Node* node = nullptr;
};

void OfLoad(Context& context, const Node* load, std::vector<Replacement>* out) {
  const auto with = [&](std::vector<const Node*> operands) {
    return context.Get(Op::kLoad, load->dtype(), {}, std::move(operands), load->attribute());
  };
  const Node* valid = load->operands().size() > 1 ? load->operand(1) : nullptr;
  for (const int64_t more : {-1, 1}) {
    std::vector<const Node*> operands = {Plus(context, load->operand(0), more)};
    if (valid != nullptr) operands.push_back(valid);
    out->push_back({StrCat("index of a load by ", more), with(std::move(operands))});
  }
  if (valid == nullptr) return;
  out->push_back({"a load's condition forgotten", with({load->operand(0)})});
  out->push_back({"a load's condition negated", with({load->operand(0), Not(context, valid)})});
}

// In a product with a constant, a comparison with one or a division by one: another constant.
void OfConstantOperand(Context& context, const Node* node, std::vector<Replacement>* out) {
  for (size_t i = 0; i < node->operands().size(); ++i) {
    const Node* constant = node->operand(static_cast<int>(i));
    if (constant->op() != Op::kConst || constant->dtype() != ir::DType::kInt64) continue;
    std::vector<const Node*> operands(node->operands().begin(), node->operands().end());
    operands[i] = Int(context, constant->attr<ir::ConstValue>().AsInt() + 1);
    out->push_back({StrCat("the constant of a ", ir::Name(node->op())),
                    context.WithOperands(node, std::move(operands))});
  }
}

// A loop's range in place of another one.
void OfRange(Context& context, const Node* range, const std::vector<const Node*>& open,
             std::vector<Replacement>* out) {
  for (const Node* other : open) {
    if (other == range || ir::ExtentOf(other) > ir::ExtentOf(range)) continue;
    out->push_back({"another loop's range", other});
    return;
  }
  out->push_back({"a range taken for 0", Int(context, 0)});
}

class Planter {
 public:
  // Keeps the faults with these numbers.
  Planter(const LoopProgram& program, const absl::flat_hash_set<size_t>& kept)
      : program_(program), context_(*program.context), kept_(kept) {}

  size_t count() const { return count_; }

  std::vector<PlantedFault> Plant() {
    for (schedule::Section& section : program_.sections) {
      open_ = section.grid;
      PlantIn(&section.body);
    }
    return std::move(faults_);
  }

 private:
  void Keep(const std::string& what) {
    if (kept_.contains(count_++))
      faults_.push_back({StrCat(what, "; statement ", statement_), program_});
  }

  // Each of these changes program_ in place, keeps a copy, and restores it.
  template <typename T>
  void With(T* place, T value, const std::string& what) {
    std::swap(*place, value);
    Keep(what);
    std::swap(*place, value);
  }

  void PlantIn(Body* body) {
    for (size_t i = 0; i < body->size(); ++i) {
      ++statement_;
      Statement& statement = (*body)[i];
      if (auto* loop = std::get_if<Loop>(&statement.node)) {
        PlantInLoop(loop);
      } else if (auto* branch = std::get_if<Branch>(&statement.node)) {
        PlantInBranch(branch);
      } else if (auto* store = std::get_if<Store>(&statement.node)) {
        PlantInStore(store);
        LeaveOutAndRepeat(body, i);
      }
    }
  }

  void LeaveOutAndRepeat(Body* body, size_t i) {
    Body without = *body, twice = *body;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), twice[i]);
    With(body, std::move(without), "a store left out");
    With(body, std::move(twice), "a store done twice");
  }

  void PlantInLoop(Loop* loop) {
    const int64_t extent = ir::ExtentOf(loop->range);
    if (loop->kind == schedule::LoopKind::kSerial) {
      const Node* known = loop->extent == nullptr ? Int(context_, extent) : loop->extent;
      With(&loop->extent, Plus(context_, known, -1), "a loop ends early");
      if (loop->extent != nullptr) {
        With(&loop->extent, Int(context_, extent), "a ragged loop runs in full");
      }
    }
    open_.push_back(loop->range);
    PlantIn(&loop->body);
    open_.pop_back();
  }

  void PlantInBranch(Branch* branch) {
    With(&branch->condition, Not(context_, branch->condition), "a branch's condition negated");
    With(&branch->then_body, branch->else_body, "both sides of a branch the same");
    With(&branch->else_body, {}, "a branch without its other side");
    PlantIn(&branch->then_body);
    PlantIn(&branch->else_body);
  }

  void PlantInStore(Store* store) {
    for (const int64_t more : {-1, 1}) {
      With(&store->index, Plus(context_, store->index, more), StrCat("index of a store by ", more));
    }
    if (store->valid != nullptr) {
      const Node* none = nullptr;
      With(&store->valid, none, "a store's condition forgotten");
      With(&store->valid, Not(context_, store->valid), "a store's condition negated");
      PlantInExpression(&store->valid);
    }
    PlantInExpression(&store->index);
    PlantInExpression(&store->value);
  }

  void PlantInExpression(const Node** place) {
    const Node* const root = *place;
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      std::vector<Replacement> replacements;
      if (node->op() == Op::kLoad) OfLoad(context_, node, &replacements);
      if (node->op() == Op::kRange) OfRange(context_, node, open_, &replacements);
      OfConstantOperand(context_, node, &replacements);
      for (const Replacement& replacement : replacements) {
        With(place, ir::Substitute(context_, root, {{node, replacement.node}}), replacement.what);
      }
    }
  }

  LoopProgram program_;
  Context& context_;
  const absl::flat_hash_set<size_t>& kept_;
  size_t count_ = 0;
  std::vector<const Node*> open_;
  std::vector<PlantedFault> faults_;
  int statement_ = 0;
};

}  // namespace

std::vector<PlantedFault> PlantFaults(const LoopProgram& program, size_t faults_max,
                                      std::mt19937& random) {
  absl::flat_hash_set<size_t> kept;
  Planter counter(program, kept);
  counter.Plant();
  std::vector<size_t> numbers(counter.count());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  std::shuffle(numbers.begin(), numbers.end(), random);
  numbers.resize(std::min(numbers.size(), faults_max));
  kept.insert(numbers.begin(), numbers.end());
  return Planter(program, kept).Plant();
}

}  // namespace kiln::numerics
