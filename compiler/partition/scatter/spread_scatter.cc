#include "compiler/partition/scatter/spread_scatter.h"

#include "compiler/ops/builder.h"
#include "compiler/partition/limits.h"
#include "compiler/partition/scatter/combine_segments.h"
#include "compiler/partition/scatter/compare_destinations.h"
#include "compiler/partition/scatter/lines.h"
#include "compiler/partition/scatter/sort_positions.h"

namespace kiln::partition {

using ir::Node;

namespace {

// Bound on the comparisons per position: sorting it costs as much.
constexpr int64_t kComparisonsMax = 1024;

bool IsWorthSpreading(const ScatterLines& scatter, const drivers::Limits& limits) {
  if (scatter.positions() <= kScatterPiece) return false;
  // In the loops, one thread per point goes over all positions.
  const int64_t points = scatter.lines() * scatter.columns();
  return points < int64_t{limits.compute_units} * limits.threads_per_unit;
}

bool HasFewDestinations(const ScatterLines& scatter) {
  // For kSet only positions are compared, not values.
  const int64_t columns = scatter.mode == ir::ScatterMode::kSet ? 1 : scatter.columns();
  return scatter.destinations() * columns <= kComparisonsMax;
}

}  // namespace

const Node* SpreadScatter(ir::Context& context, const Node* scatter,
                          const drivers::Target& target) {
  // Returned before any node is made, so that later passes get the same graph.
  if (!IsWide(target.limits)) return scatter;
  ops::Builder b(context);
  const ScatterLines lines = ToLines(b, scatter);
  if (!IsWorthSpreading(lines, target.limits)) return scatter;
  const Node* result = nullptr;
  if (HasFewDestinations(lines)) {
    result = CompareDestinations(b, lines);
  } else if (lines.positions() < kSortedMax && lines.destinations() < kSortedMax) {
    result = CombineSegments(b, lines);
  }
  if (result == nullptr) return scatter;
  result = FromLines(b, result, scatter);
  // Fails if an intermediate tensor would have too many elements.
  return b.status().ok() ? result : scatter;
}

}  // namespace kiln::partition
