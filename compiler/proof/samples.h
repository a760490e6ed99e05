// Which values of a plan's axes a proof looks at.
#ifndef KILN_COMPILER_PROOF_SAMPLES_H_
#define KILN_COMPILER_PROOF_SAMPLES_H_

#include <cstdint>
#include <random>
#include <vector>

#include "compiler/schedule/plan.h"

namespace kiln::proof {

// By axis of the plan: of a leaf, the values that its loops take, in ascending order. All
// combinations of them are looked at.
using Samples = std::vector<std::vector<int64_t>>;

class Sampler {
 public:
  // `plan` must outlive the sampler.
  Sampler(const schedule::Plan& plan, uint64_t seed);

  // Another choice at each call: the first places, the last places, then in turn mixtures of both,
  // since what is wrong at one corner alone is wrong where several axes are at their ends, and of
  // random ones. No stage has many more than `points` points.
  Samples Next(int64_t points);

  // The values of a range that was not split or fused away, or of the axis that ranges were fused
  // into, that these samples of its parts amount to.
  std::vector<int64_t> ValuesOf(int root, const Samples& samples) const;

 private:
  struct Leaf {
    std::vector<int64_t> forced;   // stand in every sample
    std::vector<int64_t> notable;  // ends, and where ragged parts end
    std::vector<int64_t> ends;     // of these the first, the last of each length, and the last lane
    int64_t extent = 0;
    int64_t least = 0;  // the extent where the axis is shortest
  };
  void Describe(int axis, const std::vector<int64_t>& extents, std::vector<int64_t> forced);
  int64_t Pick(const Leaf& leaf);
  void Widen(int64_t points, Samples* samples);
  int64_t PointsOf(int stage, const Samples& samples) const;

  const schedule::Plan& plan_;
  std::vector<Leaf> leaves_;  // by axis; without an extent: no leaf
  std::mt19937_64 random_;
  int round_ = 0;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_SAMPLES_H_
