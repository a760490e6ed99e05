#include "compiler/schedule/blocks_of_sums.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/schedule/reduction.h"
#include "proto/check/check.h"

namespace kiln::schedule {
namespace {

// Sums of at most `terms_max` terms for each accumulator stay as they are. Longer ones are cut into
// blocks of `block` terms, or of up to `block_max` where a loop ends there anyway. The shorter a
// block, the smaller the error, and the more often blocks are added.
struct Lengths {
  int64_t terms_max = 0;
  int64_t block = 0;
  int64_t block_max = 0;
  // Where the sums outside are in memory: a block then replaces a copy to registers and back.
  int64_t block_max_in_memory = 0;
};
constexpr Lengths kFew = {256, 64, 256, 1024};
// For more accumulators than `kFewSums`, which leave no registers for those outside.
constexpr Lengths kMany = {1024, 256, 1024, 1024};
constexpr int64_t kFewSums = 8;
// For tiles of blocks of threads: copies to shared memory start anew with each block of the sum,
// and the sums outside take registers, so that fewer threads run at once.
constexpr Lengths kThreads = {8192, 1024, 4096, 4096};

int64_t Times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

bool AddsFloats(const kernel::Stage& stage) {
  const std::vector<const ir::Node*> reduces = ReducesOf(stage);
  return std::any_of(reduces.begin(), reduces.end(), [](const ir::Node* reduce) {
    return reduce->attr<ir::ReduceAttr>().kind == ir::ReduceKind::kSum &&
           ir::IsFloat(reduce->dtype());
  });
}

class SumCutter {
 public:
  SumCutter(Plan& plan, StagePlan& stage) : plan_(plan), stage_(stage), order_(stage.order) {}

  bool IsLong() const { return TermsUpTo(order_.size()) > ChooseLengths().terms_max; }

  // From the innermost loop outwards, loops join the block until it is long enough.
  void Cut() {
    const Lengths& lengths = ChooseLengths();
    int64_t block = 1;
    int first = -1;  // the outermost axis of the block; -1: none at which it could begin
    bool in_memory = false;
    const auto begin = [&] {
      plan_.axes[first].block = true;
      block = 1;
      first = -1;
    };
    for (size_t position = order_.size(); position-- > 0;) {
      if (!IsChain(order_[position])) {
        in_memory |= !IsInRegisters(order_[position]);
        continue;
      }
      const bool outside_is_long = Times(block, TermsUpTo(position + 1)) > lengths.terms_max;
      // The sums are in memory outside these loops, and in registers inside.
      if (in_memory && first >= 0 && block > 1 && outside_is_long) begin();
      in_memory = false;
      while (true) {
        const int axis = order_[position];
        if (Times(block, TermsUpTo(position + 1)) <= lengths.terms_max) return;
        const Binding binding = plan_.axes[axis].binding;
        const int64_t joined = Times(block, plan_.axes[axis].extent);
        const int64_t block_max =
            IsInMemoryOutside(position) ? lengths.block_max_in_memory : lengths.block_max;
        if (binding != Binding::kSerial || joined <= block_max) {
          block = joined;
          first = binding == Binding::kMatrix ? -1 : axis;
          break;
        }
        if (first >= 0 && block >= lengths.block / 4) {
          begin();
          continue;
        }
        first = Split(position, std::max<int64_t>(lengths.block / block, 2));
        begin();
      }
    }
  }

 private:
  // Returns whether each step of the axis adds to the same accumulators.
  bool IsChain(int axis) const { return plan_.axes[axis].reduce && !plan_.axes[axis].partial; }

  bool IsInRegisters(int axis) const {
    const Binding binding = plan_.axes[axis].binding;
    return binding != Binding::kSerial && binding != Binding::kTask;
  }

  // Returns how many terms the first `count` loops of the order add to an accumulator.
  int64_t TermsUpTo(size_t count) const {
    int64_t terms = 1;
    for (size_t i = 0; i < count; ++i) {
      if (IsChain(order_[i])) terms = Times(terms, plan_.axes[order_[i]].extent);
    }
    return terms;
  }

  // Returns whether a loop over other sums is outside this position and inside the whole sum.
  bool IsInMemoryOutside(size_t position) const {
    bool in_sum = false;
    for (size_t i = 0; i < position; ++i) {
      in_sum |= plan_.axes[order_[i]].reduce;
      if (in_sum && !IsChain(order_[i]) && !IsInRegisters(order_[i])) return true;
    }
    return false;
  }

  const Lengths& ChooseLengths() const {
    if (plan_.threads > 1 && !stage_.staged.empty()) return kThreads;
    int64_t sums = 1;
    for (const int axis : order_) {
      if (!IsChain(axis) && plan_.axes[axis].binding == Binding::kUnroll) {
        sums = Times(sums, plan_.axes[axis].extent);
      }
    }
    return sums > kFewSums ? kMany : kFew;
  }

  int NewAxis(const Axis& like, int64_t extent, int parent) {
    Axis axis;
    axis.extent = extent;
    axis.reduce = true;
    axis.stage = like.stage;
    axis.parent = parent;
    plan_.axes.push_back(axis);
    return static_cast<int>(plan_.axes.size()) - 1;
  }

  // Splits the loop at this position of the order into steps of about `length`. Returns the inner
  // one; the outer one is at the position now.
  int Split(size_t position, int64_t length) {
    const int axis = order_[position];
    const int64_t extent = plan_.axes[axis].extent;
    // Pieces of the same length need less code.
    for (int64_t even = length; even > length / 2; --even) {
      if (extent % even != 0) continue;
      length = even;
      break;
    }
    const int parent = plan_.axes[axis].parent;
    const bool is_outer = parent >= 0 && plan_.axes[parent].outer == axis;
    const int inner = is_outer ? SplitWhole(parent, length) : SplitPart(axis, length);
    const int whole = is_outer ? parent : axis;
    order_[position] = plan_.axes[whole].outer;
    order_.insert(order_.begin() + static_cast<int64_t>(position) + 1, inner);
    // A piece that a branch chooses could have no barriers.
    const bool has_barriers = !stage_.staged.empty() || IsInMemoryOutside(order_.size());
    plan_.axes[order_[position]].peel_last = plan_.threads > 1 && has_barriers;
    return inner;
  }

  int SplitPart(int axis, int64_t length) {
    const Axis before = plan_.axes[axis];
    const int outer = NewAxis(before, (before.extent + length - 1) / length, axis);
    const int inner = NewAxis(before, length, axis);
    plan_.axes[inner].ahead = before.ahead;
    Axis& whole = plan_.axes[axis];
    whole.outer = outer;
    whole.inner = inner;
    whole.factor = length;
    whole.ahead = false;
    for (StageOperand& staged : stage_.staged) {
      if (staged.at == axis) staged.at = inner;
    }
    return inner;
  }

  // Splits an axis that is split already, so that its outer part gets `length` steps inside a new
  // loop. The outer part itself cannot be split: its last piece may be shorter.
  int SplitWhole(int whole, int64_t length) {
    const Axis before = plan_.axes[whole];
    const int64_t factor = before.factor * length;
    const int outer = NewAxis(before, (before.extent + factor - 1) / factor, whole);
    const int piece = NewAxis(before, factor, whole);
    plan_.axes[whole].outer = outer;
    plan_.axes[whole].inner = piece;
    plan_.axes[whole].factor = factor;
    plan_.axes[piece].outer = before.outer;
    plan_.axes[piece].inner = before.inner;
    plan_.axes[piece].factor = before.factor;
    plan_.axes[before.outer].parent = piece;
    plan_.axes[before.inner].parent = piece;
    plan_.axes[before.outer].extent = length;
    return before.outer;
  }

  Plan& plan_;
  StagePlan& stage_;
  std::vector<int>& order_;
};

}  // namespace

void CutLongSums(const kernel::Kernel& kernel, Plan* plan) {
  KILN_CHECK_EQ(kernel.stages.size(), plan->stages.size());
  for (size_t i = 0; i < plan->stages.size(); ++i) {
    SumCutter cutter(*plan, plan->stages[i]);
    if (cutter.IsLong() && AddsFloats(kernel.stages[i])) cutter.Cut();
  }
}

}  // namespace kiln::schedule
