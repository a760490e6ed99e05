#include "server/fairness/slices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "proto/check/check.h"

namespace kiln::fairness {

std::vector<CommandPart> Split(absl::Span<const CommandCost> commands, double seconds_max) {
  double total = 0;
  // A device may measure negative times.
  for (const CommandCost& command : commands) total += std::max(0.0, command.seconds);
  seconds_max = std::max(seconds_max, total / kSlicesMax);
  std::vector<CommandPart> parts;
  for (size_t i = 0; i < commands.size(); ++i) {
    const auto [seconds, points] = commands[i];
    // The tolerance avoids an extra part because of rounding.
    const double wanted = std::ceil(std::min(seconds / seconds_max, double{kSlicesMax}) - 1e-6);
    const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(wanted), 1, points);
    for (int64_t part = 0; part < count; ++part) {
      // Avoids an overflow for any number of points.
      const int64_t share = points / count, more = points % count;
      const int64_t begin = part * share + std::min(part, more);
      const int64_t end = begin + share + (part < more ? 1 : 0);
      parts.push_back({static_cast<int>(i), begin, end,
                       seconds * static_cast<double>(end - begin) / static_cast<double>(points)});
    }
  }
  // Twice as many as the limit says, for rounding.
  KILN_CHECK_LE(parts.size(), 2 * kSlicesMax + commands.size());
  return parts;
}

std::vector<double> SecondsOf(absl::Span<const CommandPart> parts) {
  std::vector<double> seconds;
  for (const CommandPart& part : parts) seconds.push_back(part.seconds);
  return seconds;
}

std::vector<CommandPart> Join(absl::Span<const CommandPart> parts) {
  std::vector<CommandPart> joined;
  for (const CommandPart& part : parts) {
    if (joined.empty() || joined.back().command != part.command) {
      joined.push_back(part);
      continue;
    }
    KILN_DCHECK_EQ(joined.back().end, part.begin);
    joined.back().end = part.end;
    joined.back().seconds += part.seconds;
  }
  return joined;
}

std::vector<Slice> Cut(absl::Span<const double> command_seconds, double seconds_max) {
  const double total = std::accumulate(command_seconds.begin(), command_seconds.end(), 0.0);
  // Any two neighbouring slices take more than `seconds_max` together, which bounds their number.
  seconds_max = std::max(seconds_max, 2 * total / (kSlicesMax - 1));
  std::vector<Slice> slices;
  for (int i = 0; i < static_cast<int>(command_seconds.size()); ++i) {
    const double seconds = command_seconds[i];
    if (slices.empty() || slices.back().seconds + seconds > seconds_max)
      slices.push_back({i, i, 0});
    slices.back().end = i + 1;
    slices.back().seconds += seconds;
  }
  KILN_CHECK_EQ(slices.empty() ? 0 : slices.back().end, command_seconds.size());
  return slices;
}

namespace {

using SecondsOfPrograms = absl::Span<const std::vector<std::vector<double>>>;

// Without a limit on the number of slices.
std::vector<JointSlice> CutAllTogether(SecondsOfPrograms seconds, double seconds_max) {
  KILN_CHECK(!seconds.empty());
  for (const auto& program : seconds) KILN_CHECK_EQ(program.size(), seconds[0].size());
  std::vector<JointSlice> slices;
  std::vector<int> begins(seconds.size());  // begins of the current stretch
  for (size_t stretch = 0; stretch < seconds[0].size(); ++stretch) {
    std::vector<std::vector<Slice>> cuts;
    size_t parts = 0;
    for (const auto& program : seconds) {
      cuts.push_back(Cut(program[stretch], seconds_max));
      parts = std::max(parts, cuts.back().size());
    }
    for (size_t part = 0; part < parts; ++part) {
      JointSlice slice{static_cast<int>(stretch), begins, 0};
      for (size_t i = 0; i < seconds.size(); ++i) {
        const bool is_there = part < cuts[i].size();
        slice.ends[i] +=
            is_there ? cuts[i][part].end : static_cast<int>(seconds[i][stretch].size());
        if (is_there) slice.seconds = std::max(slice.seconds, cuts[i][part].seconds);
      }
      if (!slices.empty() && slices.back().seconds + slice.seconds <= seconds_max) {
        slice.seconds += slices.back().seconds;
        slices.pop_back();
      }
      slices.push_back(std::move(slice));
    }
    for (size_t i = 0; i < seconds.size(); ++i)
      begins[i] += static_cast<int>(seconds[i][stretch].size());
  }
  return slices;
}

}  // namespace

std::vector<JointSlice> CutTogether(SecondsOfPrograms seconds, double seconds_max) {
  std::vector<JointSlice> slices = CutAllTogether(seconds, seconds_max);
  while (static_cast<int>(slices.size()) > kSlicesMax)
    slices = CutAllTogether(seconds, seconds_max *= 2);
  KILN_CHECK_LE(slices.size(), kSlicesMax);
  return slices;
}

}  // namespace kiln::fairness
