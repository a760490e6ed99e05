#include "tests/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "absl/time/clock.h"

namespace kiln::bench {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

absl::StatusOr<double> Time(const Work& work, int times) {
  const absl::Time begin = absl::Now();
  if (absl::Status status = work(times); !status.ok()) return status;
  return absl::ToDoubleSeconds(absl::Now() - begin) / times;
}

// Returns how often the work fits into `seconds`, at least once.
absl::StatusOr<int> Repetitions(const Work& work, double seconds) {
  if (absl::StatusOr<double> first = Time(work, 1); !first.ok()) return first.status();
  int times = 1;
  while (true) {
    absl::StatusOr<double> one = Time(work, times);
    if (!one.ok()) return one.status();
    // Long enough to be timed accurately.
    if (*one * times >= seconds / 4)
      return std::max(1, static_cast<int>(std::ceil(seconds / *one)));
    times *= 4;
  }
}

}  // namespace

Effort QuickEffort() { return {.rounds = 3, .seconds = 0.005}; }

absl::StatusOr<Pair> Interleave(const Work& work, const Work& peer, const Effort& effort) {
  std::vector<const Work*> sides = {&work};
  if (peer) sides.push_back(&peer);
  std::vector<int> times;
  for (const Work* side : sides) {
    absl::StatusOr<int> repetitions = Repetitions(*side, effort.seconds);
    if (!repetitions.ok()) return repetitions.status();
    times.push_back(*repetitions);
  }
  std::vector<std::vector<double>> seconds(2);
  for (int round = 0; round < effort.rounds; ++round) {
    for (size_t side = 0; side < sides.size(); ++side) {
      absl::SleepFor(absl::Milliseconds(80));
      if (auto warm = Time(*sides[side], std::max(1, times[side] / 4)); !warm.ok())
        return warm.status();
      absl::StatusOr<double> one = Time(*sides[side], times[side]);
      if (!one.ok()) return one.status();
      seconds[side].push_back(*one);
    }
  }
  return Pair{.seconds = Median(seconds[0]), .peer_seconds = Median(seconds[1])};
}

void Print(const Row& row) {
  std::printf(R"({"name": "%s", "unit": "%s", "value": %.6g, "peer": "%s", "peer_value": %.6g})"
              "\n",
              row.name.c_str(), row.unit.c_str(), row.value, row.peer.c_str(), row.peer_value);
  std::fflush(stdout);
}

}  // namespace kiln::bench
