#include "compiler/partition/spread_scatter.h"

#include "compiler/ops/builder.h"
#include "compiler/partition/combine_segments.h"
#include "compiler/partition/compare_destinations.h"
#include "compiler/partition/limits.h"
#include "compiler/partition/scatter_lines.h"
#include "compiler/partition/sort_positions.h"

namespace kiln::partition {

using ir::Node;

namespace {

// Comparisons of a position, at most: sorting it costs as much.
constexpr int64_t kComparisonsMax = 1024;

bool IsWorthSpreading(const ScatterLines& scatter, const drivers::Limits& limits) {
  if (scatter.positions() <= kScatterPiece) return false;
  // A thread goes over the positions for each of these.
  const int64_t points = scatter.lines() * scatter.columns();
  return points < int64_t{limits.compute_units} * limits.threads_per_unit;
}

bool HasFewDestinations(const ScatterLines& scatter) {
  // Only the positions of values that are set are compared.
  const int64_t columns = scatter.mode == ir::ScatterMode::kSet ? 1 : scatter.columns();
  return scatter.destinations() * columns <= kComparisonsMax;
}

}  // namespace

const Node* SpreadScatter(ir::Context& context, const Node* scatter,
                          const drivers::Target& target) {
  // Before anything is made, so that all else finds the same graph.
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
  // Of too many elements somewhere on the way.
  return b.status().ok() ? result : scatter;
}

}  // namespace kiln::partition
