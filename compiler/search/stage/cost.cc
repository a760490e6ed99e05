#include "compiler/search/stage/cost.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;

class Counter {
 public:
  explicit Counter(StageWork* work) : work_(*work) {}

  void Visit(const Node* node, bool inside) {
    // A value used both within the reduction and after it is computed in both places.
    if (!seen_[inside ? 1 : 0].insert(node).second) return;
    switch (node->op()) {
      case Op::kConst:
      case Op::kRange:
        return;
      case Op::kReduce:
        ++work_.reductions;
        ++work_.inside_operations;
        Visit(node->operand(0), true);
        return;
      case Op::kLoad:
        work_.accesses.push_back({node->operand(0),
                                  static_cast<int>(node->attr<ir::IntAttr>().value), false, inside,
                                  ir::SizeOf(node->dtype())});
        work_.widest = std::max(work_.widest, ir::SizeOf(node->dtype()));
        if (node->operands().size() > 1) Visit(node->operand(1), inside);
        return;
      default:
        ++(inside ? work_.inside_operations : work_.outside_operations);
        for (const Node* operand : node->operands()) Visit(operand, inside);
    }
  }

 private:
  StageWork& work_;
  absl::flat_hash_set<const Node*> seen_[2];
};

// Returns whether the atom is an idiv or mod of a sum in which the range has the coefficient 1.
bool IsDigitOf(const Node* atom, const Node* range) {
  return (atom->op() == Op::kIDiv || atom->op() == Op::kMod) &&
         kernel::SumOf(atom->operand(0)).Coefficient(range) == 1;
}

// The values of an index in the lanes of a vector: offset[lane] + unit * n, with one unknown n for
// all lanes. Unit 0: exactly the offsets.
struct LaneValues {
  std::vector<int64_t> offset;
  int64_t unit = 0;

  bool uniform() const {
    return std::all_of(offset.begin(), offset.end(),
                       [this](int64_t value) { return value == offset[0]; });
  }
};

// Finds the LaneValues of indices along a range. Numbers that could wrap do not matter for a cost.
class LaneValueFinder {
 public:
  LaneValueFinder(const Node* range, int lanes) : range_(range), lanes_(lanes) {}

  // Returns nothing if the lanes' differences depend on more than their numbers.
  std::optional<LaneValues> Find(const Node* index) const {
    LaneValues sum = {std::vector<int64_t>(lanes_, 0), 0};
    const kernel::Sum terms = kernel::SumOf(index);
    for (const auto& [atom, coefficient] : terms.terms) {
      const std::optional<LaneValues> values = FindAtom(atom);
      if (!values.has_value()) return std::nullopt;
      for (int lane = 0; lane < lanes_; ++lane) {
        sum.offset[lane] += coefficient * values->offset[lane];
      }
      sum.unit = std::gcd(sum.unit, coefficient * values->unit);
    }
    for (int64_t& offset : sum.offset) offset += terms.constant;
    return sum;
  }

 private:
  LaneValues Unknown() const { return {std::vector<int64_t>(lanes_, 0), 1}; }

  std::optional<LaneValues> FindAtom(const Node* atom) const {
    if (!kernel::DependsOn(atom, range_)) return Unknown();
    if (atom == range_) {
      LaneValues values = {std::vector<int64_t>(lanes_), lanes_};
      std::iota(values.offset.begin(), values.offset.end(), 0);
      return values;
    }
    const bool divides = atom->op() == Op::kIDiv;
    const int64_t divisor = divides || atom->op() == Op::kMod ? kernel::Divisor(atom) : 0;
    if (divisor == 0) return std::nullopt;
    std::optional<LaneValues> values = Find(atom->operand(0));
    if (!values.has_value()) return std::nullopt;
    return divides ? Divide(*std::move(values), divisor) : Remainder(*std::move(values), divisor);
  }

  // Returns whether all lanes are in one block of `size` numbers.
  static bool InOneBlock(const LaneValues& values, int64_t size) {
    return std::all_of(values.offset.begin(), values.offset.end(), [&](int64_t value) {
      return kernel::FloorDiv(value, size) == kernel::FloorDiv(values.offset[0], size);
    });
  }

  std::optional<LaneValues> Divide(LaneValues values, int64_t divisor) const {
    if (values.uniform()) return Unknown();
    if (values.unit % divisor == 0) {
      for (int64_t& offset : values.offset) offset = kernel::FloorDiv(offset, divisor);
      return LaneValues{std::move(values.offset), values.unit / divisor};
    }
    if (divisor % values.unit == 0 && InOneBlock(values, values.unit)) return Unknown();
    return std::nullopt;
  }

  std::optional<LaneValues> Remainder(LaneValues values, int64_t divisor) const {
    if (values.uniform()) return Unknown();
    if (values.unit % divisor == 0) {
      for (int64_t& offset : values.offset) {
        offset -= kernel::FloorDiv(offset, divisor) * divisor;
      }
      return LaneValues{std::move(values.offset), 0};
    }
    if (divisor % values.unit == 0 && InOneBlock(values, values.unit)) return values;
    return std::nullopt;
  }

  const Node* range_;
  const int lanes_;
};

double AccessCost(const StageWork::Access& access, const Node* range, bool masked, int lanes,
                  const drivers::InstructionCosts& costs) {
  const LaneAccess along = AccessOfLanes(access.index, range, lanes);
  if (along == LaneAccess::kUniform) return costs.broadcast;
  if (along == LaneAccess::kWhole) {
    return (access.store ? costs.store : costs.load) + (masked ? costs.masked : 0);
  }
  if (access.store) return costs.scatter;
  return along == LaneAccess::kShuffled ? costs.shuffled_load : costs.gather;
}

}  // namespace

StageWork WorkOf(const kernel::Stage& stage) {
  StageWork work;
  Counter counter(&work);
  for (const kernel::Store& store : stage.stores) {
    work.accesses.push_back(
        {store.index, store.buffer, true, false, ir::SizeOf(store.value->dtype())});
    work.widest = std::max(work.widest, ir::SizeOf(store.value->dtype()));
    counter.Visit(store.value, false);
  }
  return work;
}

int WidestAlong(const StageWork& work, const Node* range) {
  int widest = 1;
  for (const StageWork::Access& access : work.accesses) {
    if (access.store || kernel::DependsOn(access.index, range)) {
      widest = std::max(widest, access.bytes);
    }
  }
  return widest;
}

LaneAccess AccessAlong(const Node* index, const Node* range) {
  const kernel::Sum sum = kernel::SumOf(index);
  const int64_t step = std::abs(sum.Coefficient(range));
  bool near = step == 2;
  bool far = step > 2;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (atom == range || !kernel::DependsOn(atom, range)) continue;
    (IsDigitOf(atom, range) && coefficient == 1 ? near : far) = true;
  }
  if (far) return LaneAccess::kScattered;
  if (near) return LaneAccess::kShuffled;
  return step == 1 ? LaneAccess::kWhole : LaneAccess::kUniform;
}

LaneAccess AccessOfLanes(const Node* index, const Node* range, int lanes) {
  const auto values = LaneValueFinder(range, lanes).Find(index);
  if (!values.has_value()) return AccessAlong(index, range);
  const auto [low, high] = std::minmax_element(values->offset.begin(), values->offset.end());
  if (*low == *high) return LaneAccess::kUniform;
  const int64_t step = values->offset[1] - values->offset[0];
  bool whole = std::abs(step) == 1;
  for (int lane = 0; lane < lanes; ++lane) {
    whole &= values->offset[lane] - values->offset[0] == lane * step;
  }
  if (whole) return LaneAccess::kWhole;
  return *high - *low < 2 * lanes ? LaneAccess::kShuffled : LaneAccess::kScattered;
}

int64_t SharedSteps(const StageWork& work, const Node* range) {
  int64_t steps = 1;
  for (const StageWork::Access& access : work.accesses) {
    for (const auto& [atom, coefficient] : kernel::SumOf(access.index).terms) {
      if (atom->op() != Op::kIDiv || atom->operand(1)->op() != Op::kConst) continue;
      if (kernel::SumOf(atom->operand(0)).Coefficient(range) != 1) continue;
      const int64_t divisor = atom->operand(1)->attr<ir::ConstValue>().AsInt();
      if (divisor <= 4) steps = std::max(steps, divisor);
    }
  }
  return steps;
}

double CostOf(const StageWork& work, int64_t points, int64_t reduce_points, const LaneAxis& axis,
              int lanes, const drivers::InstructionCosts& costs) {
  double inside = work.inside_operations;
  double outside = work.outside_operations;
  const bool vector = axis.range != nullptr;
  const bool masked = vector && axis.extent % lanes != 0;
  for (const StageWork::Access& access : work.accesses) {
    // Lanes along a reduction no longer exist in the code after it.
    const bool lanes_here = vector && (access.inside || !axis.reduce);
    (access.inside ? inside : outside) +=
        lanes_here ? AccessCost(access, axis.range, masked, lanes, costs) : 1;
  }
  double inner = static_cast<double>(points) * static_cast<double>(reduce_points);
  double outer = static_cast<double>(points);
  if (!vector) return inner * inside + outer * outside;
  // A ragged last vector costs as much as a full one.
  const double share = static_cast<double>((axis.extent + lanes - 1) / lanes) /
                       static_cast<double>(std::max<int64_t>(axis.extent, 1));
  inner *= share;
  if (axis.reduce) {
    outside += costs.horizontal * work.reductions;
  } else {
    outer *= share;
  }
  return inner * inside + outer * outside;
}

}  // namespace kiln::search
