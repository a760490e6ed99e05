#include "compiler/schedule/apply/shorten.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using ir::Op;

// The maximum number of conditions tried for one loop.
constexpr size_t kConditionsMax = 8;

template <typename Visit>
void ForEachStatement(const std::vector<Statement>& body, const Visit& visit) {
  for (const Statement& statement : body) {
    visit(statement);
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      ForEachStatement(loop->body, visit);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      ForEachStatement(branch->then_body, visit);
      ForEachStatement(branch->else_body, visit);
    }
  }
}

// The right side of a condition, after all terms except the loop's own are moved there.
class Rest {
 public:
  Rest(kernel::ExpressionFolder& folder, int64_t left, int64_t right)
      : folder_(folder),
        sum_(folder.Int(kernel::WrappingAdd(right, kernel::WrappingMul(left, -1)))),
        known_(kernel::AddUnlessWrapped({right, right}, kernel::Scale({left, left}, -1))) {}

  // Adds a number that is the same in all iterations.
  void AddSteady(const Node* number, int64_t factor) {
    sum_ = folder_.Add(sum_, folder_.Mul(number, factor));
    const kernel::Interval bounds = kernel::BoundsOf(number);
    if (kernel::IsKnown(bounds)) return Count(bounds, factor);
    wild_.push_back(number);
    const uint64_t factors_max = kernel::kUnbounded;
    factors_ = std::min(factors_ + std::min(kernel::Magnitude(factor), factors_max), factors_max);
  }
  // Adds the maximum of a term.
  void AddMost(const kernel::Interval& bounds, int64_t factor) {
    const int64_t end = factor > 0 ? bounds.high : bounds.low;
    sum_ = folder_.Add(sum_, folder_.Int(kernel::WrappingMul(end, factor)));
    Count(bounds, factor);
  }
  // Counts a term of the condition that is not part of the sum.
  void Count(const kernel::Interval& bounds, int64_t factor) {
    known_ = kernel::AddUnlessWrapped(known_, kernel::Scale(bounds, factor));
  }

  const Node* sum() const { return sum_; }
  // IsKnown returns whether the bounded terms add up to less than kUnbounded. If UnknownAreSmall
  // holds as well, so do the terms without bounds, and neither side of the condition wraps.
  bool IsKnown() const { return kernel::IsKnown(known_); }
  const Node* UnknownAreSmall() const {
    const Node* small = folder_.Bool(true);
    for (const Node* number : wild_) {
      const int64_t number_max = kernel::kUnbounded / static_cast<int64_t>(factors_);
      small = folder_.And(small, folder_.And(folder_.Less(folder_.Int(-number_max), number),
                                             folder_.Less(number, folder_.Int(number_max))));
    }
    return small;
  }

 private:
  kernel::ExpressionFolder& folder_;
  const Node* sum_;
  kernel::Interval known_;
  std::vector<const Node*> wild_;  // without bounds
  uint64_t factors_ = 0;           // the sum of their factors
};

class Shortener {
 public:
  Shortener(LoopProgram* program, int kernel_buffers)
      : program_(*program), folder_(*program->context), kernel_buffers_(kernel_buffers) {}

  void Shorten(std::vector<Statement>* body) {
    for (Statement& statement : *body) {
      if (auto* loop = std::get_if<Loop>(&statement.node)) {
        if (loop->kind == LoopKind::kSerial) ShortenLoop(loop);
        Shorten(&loop->body);
      } else if (auto* branch = std::get_if<Branch>(&statement.node)) {
        Shorten(&branch->then_body);
        Shorten(&branch->else_body);
      }
    }
  }

 private:
  void ShortenLoop(Loop* loop) {
    absl::flat_hash_set<const Node*> inside = {loop->range};
    written_.clear();
    std::vector<const Node*> roots;
    ForEachStatement(loop->body, [&](const Statement& statement) {
      if (const auto* inner = std::get_if<Loop>(&statement.node)) inside.insert(inner->range);
      if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) {
        written_.insert(reduce->buffer);
      }
      if (const auto* store = std::get_if<Store>(&statement.node)) {
        written_.insert(store->buffer);
        roots.push_back(store->value);
        if (store->valid != nullptr) roots.push_back(store->valid);
      }
    });
    size_t tried = 0;
    for (const Node* node : ir::TopologicalOrder(roots)) {
      if (node->op() != Op::kCmpLt || node->operand(0)->dtype() != ir::DType::kInt64) continue;
      const Node* limit = LimitOf(node, *loop, inside);
      if (limit == nullptr || ++tried > kConditionsMax) continue;
      if (!VanishesWithout(loop->body, node)) continue;
      const Node* before = loop->extent != nullptr
                               ? loop->extent
                               : folder_.Int(loop->range->attr<ir::RangeAttr>().extent);
      loop->extent = Pair(Op::kMin, before, Pair(Op::kMax, limit, folder_.Int(0)));
    }
  }

  const Node* Pair(Op op, const Node* a, const Node* b) {
    return folder_.context().Get(op, ir::DType::kInt64, {}, {a, b});
  }

  // Returns the first iteration from which on `less` is false for all values of the ranges inside.
  // Returns null if there is none, or if no number is loaded for it. The result is the full extent
  // where a side of `less` might wrap.
  const Node* LimitOf(const Node* less, const Loop& loop,
                      const absl::flat_hash_set<const Node*>& inside) {
    const kernel::Sum left = kernel::SumOf(less->operand(0));
    const kernel::Sum right = kernel::SumOf(less->operand(1));
    const int64_t step = kernel::WrappingAdd(
        left.Coefficient(loop.range), kernel::WrappingMul(right.Coefficient(loop.range), -1));
    if (step <= 0 || !kernel::IsSmall(step)) return nullptr;
    // `less` is step * range + (terms of ranges inside) < rest.
    Rest rest(folder_, left.constant, right.constant);
    bool loads = false;
    for (const auto& [sum, sign] : {std::pair{&left, int64_t{-1}}, std::pair{&right, int64_t{1}}}) {
      for (const auto& [atom, coefficient] : sum->terms) {
        const int64_t factor = kernel::WrappingMul(sign, coefficient);
        if (atom == loop.range) {
          rest.Count(kernel::BoundsOf(atom), factor);
        } else if (!DependsOnAny(atom, inside)) {
          if (!IsSteady(atom, &loads)) return nullptr;
          rest.AddSteady(atom, factor);
        } else {
          if (kernel::DependsOn(atom, loop.range)) return nullptr;
          rest.AddMost(kernel::BoundsOf(atom), factor);
        }
      }
    }
    if (!loads || !rest.IsKnown()) return nullptr;
    // The right side unchanged, even if it wraps.
    if (step == 1 && rest.sum() == less->operand(1)) return rest.sum();
    const Node* limit = rest.sum();
    if (step > 1) {
      limit = Pair(Op::kIDiv, folder_.Add(limit, folder_.Int(step - 1)), folder_.Int(step));
    }
    return folder_.Where(rest.UnknownAreSmall(), limit,
                         folder_.Int(loop.range->attr<ir::RangeAttr>().extent));
  }

  static bool DependsOnAny(const Node* node, const absl::flat_hash_set<const Node*>& ranges) {
    const std::vector<const Node*> used = ir::RangesOf(node);
    return std::any_of(used.begin(), used.end(),
                       [&](const Node* range) { return ranges.contains(range); });
  }

  // Returns whether a value stays the same while the loop runs. Accumulators do not: they are
  // loaded from registers or scratch.
  bool IsSteady(const Node* node, bool* loads) const {
    for (const Node* part : ir::TopologicalOrder({&node, 1})) {
      if (part->op() != Op::kLoad) continue;
      const auto number = static_cast<int>(part->attr<ir::IntAttr>().value);
      const LoopBuffer& buffer = program_.buffers[number];
      const bool global = buffer.space == Space::kGlobal && buffer.read_only;
      const bool shared = buffer.space == Space::kShared && !written_.contains(number);
      if (!global && !shared) return false;
      *loads = true;
    }
    return true;
  }

  bool VanishesWithout(const std::vector<Statement>& body, const Node* condition) {
    bool vanishes = true;
    empty_.clear();
    ForEachStatement(body, [&](const Statement& statement) {
      const auto* store = std::get_if<Store>(&statement.node);
      vanishes &= !std::holds_alternative<ThreadReduce>(statement.node);
      if (store == nullptr || !vanishes) return;
      // An accumulator that begins anew in each iteration is not read after the loop.
      if (store->value->op() == Op::kConst && store->buffer >= kernel_buffers_) {
        vanishes = empty_.emplace(store->buffer, store->value).first->second == store->value;
      } else {
        vanishes = Vanishes(*store, condition);
      }
    });
    return vanishes;
  }

  // Returns whether the store has no effect without the condition: it is invalid, or it combines
  // the old value with the identity.
  bool Vanishes(const Store& store, const Node* condition) {
    if (store.valid != nullptr && IsFalseWithout(store.valid, condition)) return true;
    // A scatter may add to -0, and -0 + 0 is +0. Accumulators begin with +0.
    if (program_.buffers[store.buffer].space == Space::kGlobal) return false;
    const Node* value = store.value;
    const std::optional<ir::ReduceKind> kind = KindOf(value->op());
    if (!kind.has_value()) return false;
    for (const int i : {0, 1}) {
      const Node* old = value->operand(i);
      const bool is_old = old->op() == Op::kLoad && old->operands().size() == 1 &&
                          old->attr<ir::IntAttr>().value == store.buffer &&
                          old->operand(0) == store.index;
      if (is_old && IsNeutral(*kind, value->operand(1 - i), condition)) return true;
    }
    return false;
  }

  bool IsNeutral(ir::ReduceKind kind, const Node* term, const Node* condition) const {
    if (term->op() == Op::kLoad && term->operands().size() == 1) {
      const auto block = empty_.find(static_cast<int>(term->attr<ir::IntAttr>().value));
      if (block != empty_.end()) term = block->second;
    }
    return IsNeutralWithout(kind, term, condition);
  }

  static std::optional<ir::ReduceKind> KindOf(Op op) {
    if (op == Op::kAdd) return ir::ReduceKind::kSum;
    if (op == Op::kMul) return ir::ReduceKind::kProd;
    if (op == Op::kMax) return ir::ReduceKind::kMax;
    return std::nullopt;
  }

  const LoopProgram& program_;
  kernel::ExpressionFolder folder_;
  const int kernel_buffers_;
  absl::flat_hash_set<int> written_;  // by the loop
  // The value that a buffer has in an iteration without terms, of those that the loop sets to a
  // constant first.
  absl::flat_hash_map<int, const Node*> empty_;
};

}  // namespace

void ShortenLoops(LoopProgram* program, int kernel_buffers) {
  Shortener shortener(program, kernel_buffers);
  for (Section& section : program->sections) shortener.Shorten(&section.body);
}

}  // namespace kiln::schedule
