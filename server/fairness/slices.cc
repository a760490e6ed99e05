#include "server/fairness/slices.h"

#include <algorithm>
#include <numeric>

namespace kiln::fairness {

std::vector<Slice> Cut(absl::Span<const double> command_seconds, double most) {
  const double total = std::accumulate(command_seconds.begin(), command_seconds.end(), 0.0);
  // Any two neighbours take more than `most` together, so that there are at most this many.
  most = std::max(most, 2 * total / (kMostSlices - 1));
  std::vector<Slice> slices;
  for (int i = 0; i < static_cast<int>(command_seconds.size()); ++i) {
    const double seconds = command_seconds[i];
    if (slices.empty() || slices.back().seconds + seconds > most) slices.push_back({i, i, 0});
    slices.back().end = i + 1;
    slices.back().seconds += seconds;
  }
  return slices;
}

}  // namespace kiln::fairness
