// Times two things alternately on one machine, so that clock rate and other load affect both
// equally.
#ifndef KILN_TESTS_BENCH_MEASURE_H_
#define KILN_TESTS_BENCH_MEASURE_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::bench {

// Does the work `times` times.
using Work = std::function<absl::Status(int times)>;

struct Effort {
  int rounds = 9;
  double seconds = 0.05;  // the minimum for each side in each round
};
Effort QuickEffort();

struct Pair {
  double seconds = 0;       // for one repetition: the median over the rounds
  double peer_seconds = 0;  // 0 without a peer
};

// Alternates between the two, with a short pause and a warm-up before each, so that the other
// side's threads are asleep.
absl::StatusOr<Pair> Interleave(const Work& work, const Work& peer, const Effort& effort);

// One line of the report, as JSON.
struct Row {
  std::string name;
  std::string unit;  // a rate ("GFLOP/s"), where more is better, or a time ("us")
  double value = 0;
  std::string peer = {};
  double peer_value = 0;
};
void Print(const Row& row);

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_MEASURE_H_
