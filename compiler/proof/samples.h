// Chooses the values of a plan's axes at which a proof evaluates.
#ifndef KILN_COMPILER_PROOF_SAMPLES_H_
#define KILN_COMPILER_PROOF_SAMPLES_H_

#include <cstdint>
#include <random>
#include <vector>

#include "compiler/kernel/index_value.h"
#include "compiler/schedule/plan.h"

namespace kiln::proof {

// By axis of the plan: for a leaf, the values that its loops take, in ascending order. All their
// combinations are evaluated.
using Samples = std::vector<std::vector<int64_t>>;

class Sampler {
 public:
  // `plan` must outlive the sampler.
  Sampler(const schedule::Plan& plan, uint64_t seed);

  // Returns other samples at each call: the first iterations, the last iterations, then alternately
  // mixtures of both (a mistake only at a corner shows where several axes are at their ends) and
  // mixtures with random iterations. No stage has many more than `points` points.
  Samples Next(int64_t points);
  // Like Next, but the axes of these ranges have only these values and those in every sample.
  Samples At(const kernel::IndexPoint& point, int64_t points);

  // Returns the values, implied by these samples of its parts, of a range that was not split or
  // fused, or of the axis that ranges were fused into.
  std::vector<int64_t> ValuesOf(int root, const Samples& samples) const;

 private:
  struct Leaf {
    std::vector<int64_t> forced;   // in every sample
    std::vector<int64_t> notable;  // ends, and where ragged parts end
    std::vector<int64_t> ends;     // the first, the last of each length, and the last lane
    int64_t extent = 0;
    int64_t shortest = 0;  // the shortest extent of the axis
  };
  void Describe(int axis, const std::vector<int64_t>& extents, std::vector<int64_t> forced);
  int64_t Pick(const Leaf& leaf);
  int64_t ValueOf(int axis, const kernel::IndexPoint& point, bool* known) const;
  void Fix(int axis, int64_t value, Samples* samples) const;
  void Widen(int64_t points, Samples* samples);
  int64_t PointsOf(int stage, const Samples& samples) const;

  const schedule::Plan& plan_;
  std::vector<Leaf> leaves_;  // by axis; an extent of 0: not a leaf
  std::mt19937_64 random_;
  int round_ = 0;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_SAMPLES_H_
