// A model of kernels' times that is fitted to measured ones. It orders schedules of one kernel, so
// that a search measures the promising ones first.
//
// Gradient-boosted regression trees (Friedman, "Greedy function approximation", 2001) of the
// logarithm of a schedule's time as a multiple of the heuristic's. Their inputs are features
// (model/features.h), and their differences to those of the heuristic's schedule, so what is learnt
// from one kernel says something about others.
#ifndef KILN_COMPILER_SEARCH_MODEL_COST_MODEL_H_
#define KILN_COMPILER_SEARCH_MODEL_COST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "compiler/search/model/features.h"

namespace kiln::search {

// A measured schedule.
struct CostSample {
  Features heuristic;  // of the kernel's heuristic schedule
  Features features;
  double log_ratio = 0;  // the natural logarithm of its time over the heuristic's
};

class CostModel {
 public:
  struct Options {
    int trees = 150;
    int depth = 3;
    double learning_rate = 0.1;
    int samples_min = 8;  // of a leaf
  };

  // Predicts 0 for everything.
  CostModel() = default;
  // Fits the samples. The same samples give the same model. Takes time in proportion to trees,
  // features and samples. Requires: all features have the size of FeatureNames.
  static CostModel Fit(absl::Span<const CostSample> samples, const Options& options);
  static CostModel Fit(absl::Span<const CostSample> samples) { return Fit(samples, Options()); }

  // Returns the expected log_ratio.
  double Predict(const Features& heuristic, const Features& features) const;

  bool empty() const { return trees_.empty(); }

 private:
  struct Node {
    int input = -1;  // -1: a leaf
    float threshold = 0;
    int below = 0;  // the node for inputs up to the threshold; the next one is for others
    double value = 0;
  };
  using Tree = std::vector<Node>;
  friend class TreeGrower;

  static double ValueOf(const Tree& tree, const std::vector<float>& inputs);

  double mean_ = 0;
  std::vector<Tree> trees_;
};

// Statistics of how well predictions order times: 1 if they have the same order, -1 if the
// opposite one; ties count half (Spearman's correlation of ranks). 0 if one of them does not vary.
// Requires: as many of each.
double RankCorrelation(absl::Span<const double> predictions, absl::Span<const double> times);

// Returns how much longer the best of the `count` lowest predictions takes than the best of all:
// 0.1 means 10%. Of equal predictions the first come first. Requires: some; positive times.
double Regret(absl::Span<const double> predictions, absl::Span<const double> times, size_t count);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_MODEL_COST_MODEL_H_
