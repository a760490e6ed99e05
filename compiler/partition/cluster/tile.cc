#include "compiler/partition/cluster/tile.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::partition {
namespace {

// Returns the digit after the lowest part of its loop, of size `extent`, has become the loop `low`.
// Nothing if that cuts the digit.
std::optional<Digits> SplitDigit(const Digit& digit, int64_t extent, int low) {
  const int64_t end = digit.stride * digit.extent;
  if (digit.stride % extent == 0) {
    return Digits{{digit.loop, digit.stride / extent, digit.extent}};
  }
  if (extent % end == 0) return Digits{{low, digit.stride, digit.extent}};
  if (extent % digit.stride != 0 || end % extent != 0) return std::nullopt;
  return Digits{{digit.loop, 1, end / extent}, {low, digit.stride, extent / digit.stride}};
}

// Returns the largest divisor of `extent` that is at most `divisor_max`.
int64_t LargestDivisor(int64_t extent, int64_t divisor_max) {
  for (int64_t divisor = std::min(extent, divisor_max); divisor > 1; --divisor) {
    if (extent % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

TileCut::TileCut(Clustering* clustering, int cluster)
    : all_(*clustering),
      cluster_(clustering->clusters[cluster]),
      loops_(cluster_.loops),
      grid_(cluster_.grid) {
  KILN_CHECK_EQ(cluster_.stages.size(), 1U) << "cluster " << cluster;
  for (const int member : cluster_.stages[0]) {
    axes_.emplace_back(member, all_.members[member].axes);
  }
}

TileCut::~TileCut() {
  if (kept_) return;
  cluster_.loops = std::move(loops_);
  cluster_.grid = std::move(grid_);
  for (auto& [member, axes] : axes_) all_.members[member].axes = std::move(axes);
}

bool TileCut::Make(int64_t elements, int64_t points_enough) {
  int64_t size = 1;
  while (!cluster_.grid.empty()) {
    // The last loop of the grid runs over adjacent elements in memory.
    const int loop = cluster_.grid.back();
    const int64_t extent = cluster_.loops[loop];
    if (size >= kTileMin && GridPoints(cluster_, cluster_.grid) >= points_enough) break;
    if (size * extent > elements) {
      const int64_t part = LargestDivisor(extent, elements / size);
      if (part > 1 && !SplitLoop(loop, part)) return false;
      size *= part;
      break;
    }
    size *= extent;
    cluster_.grid.pop_back();
  }
  return size >= kTileMin;
}

bool TileCut::SplitLoop(int loop, int64_t extent) {
  const int low = static_cast<int>(cluster_.loops.size());
  for (const int member : cluster_.stages[0]) {
    for (Digits& axis : all_.members[member].axes) {
      Digits split;
      for (const Digit& digit : axis) {
        if (digit.loop != loop) {
          split.push_back(digit);
          continue;
        }
        const std::optional<Digits> parts = SplitDigit(digit, extent, low);
        if (!parts.has_value()) return false;
        split.insert(split.end(), parts->begin(), parts->end());
      }
      axis = Normalized(std::move(split));
    }
  }
  KILN_CHECK_EQ(cluster_.loops[loop] % extent, 0);
  cluster_.loops[loop] /= extent;
  cluster_.loops.push_back(extent);
  return true;
}

}  // namespace kiln::partition
