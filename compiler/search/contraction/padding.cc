#include "compiler/search/contraction/padding.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/index_value.h"
#include "compiler/schedule/reduction.h"
#include "compiler/search/contraction/contraction.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;
using Point = kernel::IndexPoint;

// More conditions than this do not fit the key of a share.
constexpr size_t kConditionsMax = 64;
// More points than this are not counted.
constexpr int64_t kPointsMax = 1 << 14;

// Moves `point` to the next one of these ranges; returns false after the last.
bool Advance(const std::vector<const Node*>& ranges, Point* point) {
  for (const Node* range : ranges) {
    int64_t& value = (*point)[range];
    if (++value < ir::ExtentOf(range)) return true;
    value = 0;
  }
  return false;
}

}  // namespace

Padding::Padding(const kernel::Stage& stage) {
  std::vector<const Node*> roots, reduces;
  for (const kernel::Store& store : stage.stores) roots.push_back(store.value);
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() == Op::kReduce) reduces.push_back(node);
  }
  for (const Node* node : schedule::NeededConditions(reduces)) {
    if (conditions_.size() < kConditionsMax) conditions_.push_back({node, ir::RangesOf(node)});
  }
}

bool Padding::IsKnown(const Condition& condition, absl::Span<const Node* const> tile) {
  return absl::c_none_of(condition.ranges,
                         [&](const Node* range) { return absl::c_linear_search(tile, range); });
}

bool Padding::IsTested(const Node* range, absl::Span<const Node* const> tile) const {
  return absl::c_any_of(conditions_, [&](const Condition& condition) {
    return absl::c_linear_search(condition.ranges, range) && IsKnown(condition, tile);
  });
}

bool Padding::ReadsInPlace(const Node* factor, absl::Span<const Node* const> tile) const {
  if (!HasPlainIndex(factor)) return false;
  std::vector<const Node*> parts = {factor->operands().begin() + 1, factor->operands().end()};
  while (!parts.empty()) {
    const Node* part = parts.back();
    parts.pop_back();
    if (part->op() == Op::kAnd) {
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
      continue;
    }
    const bool tested = absl::c_any_of(conditions_, [&](const Condition& condition) {
      return condition.node == part && IsKnown(condition, tile);
    });
    if (!tested) return false;
  }
  return true;
}

double Padding::ComputedShare(absl::Span<const Node* const> tile) const {
  std::vector<const Condition*> left;
  uint64_t key = 0;
  for (size_t i = 0; i < conditions_.size(); ++i) {
    if (!IsKnown(conditions_[i], tile)) continue;
    left.push_back(&conditions_[i]);
    key |= uint64_t{1} << i;
  }
  const auto [known, is_new] = shares_.try_emplace(key, 1);
  if (!is_new) return known->second;
  double share = 1;
  while (!left.empty()) {
    // Conditions that have a range in common, directly or by others, hold or fail together.
    std::vector<const Condition*> connected = {left.back()};
    left.pop_back();
    for (size_t i = 0; i < connected.size(); ++i) {
      for (size_t j = left.size(); j-- > 0;) {
        const bool meets = absl::c_any_of(left[j]->ranges, [&](const Node* range) {
          return absl::c_linear_search(connected[i]->ranges, range);
        });
        if (!meets) continue;
        connected.push_back(left[j]);
        left.erase(left.begin() + static_cast<int64_t>(j));
      }
    }
    std::vector<const Node*> nodes;
    for (const Condition* condition : connected) nodes.push_back(condition->node);
    share *= HeldShare(nodes);
  }
  shares_[key] = share;
  return share;
}

double HeldShare(absl::Span<const Node* const> conditions) {
  Point point;
  for (const Node* condition : conditions) {
    for (const Node* range : ir::RangesOf(condition)) point[range] = 0;
  }
  std::vector<const Node*> ranges;
  double points = 1;
  for (const auto& [range, zero] : point) {
    ranges.push_back(range);
    points *= static_cast<double>(ir::ExtentOf(range));
  }
  if (points > kPointsMax) return 1;
  int64_t held = 0;
  do {
    bool holds = true;
    for (const Node* condition : conditions) {
      const std::optional<int64_t> value = kernel::ValueAt(condition, point);
      if (!value) return 1;
      holds = holds && *value != 0;
    }
    held += holds ? 1 : 0;
  } while (Advance(ranges, &point));
  return static_cast<double>(held) / points;
}

}  // namespace kiln::search
