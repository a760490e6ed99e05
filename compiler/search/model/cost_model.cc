#include "compiler/search/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "proto/check/check.h"

namespace kiln::search {
namespace {

constexpr int kBins = 32;

// The features of a schedule, and their differences to the heuristic's.
std::vector<float> InputsOf(const Features& heuristic, const Features& features) {
  KILN_CHECK_EQ(heuristic.size(), features.size());
  std::vector<float> inputs;
  for (const double feature : features) inputs.push_back(static_cast<float>(feature));
  for (size_t i = 0; i < features.size(); ++i)
    inputs.push_back(static_cast<float>(features[i] - heuristic[i]));
  return inputs;
}

// Returns the ranks of the values, from 0; equal values have the mean of their ranks.
std::vector<double> RanksOf(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

}  // namespace

// Grows one tree for the residuals. Inputs are sorted into bins once.
class TreeGrower {
 public:
  TreeGrower(const std::vector<std::vector<float>>& inputs, const CostModel::Options& options)
      : inputs_(inputs), options_(options) {
    for (size_t input = 0; input < inputs_[0].size(); ++input) MakeBins(input);
  }

  CostModel::Tree Grow(const std::vector<double>& residuals) {
    residuals_ = &residuals;
    tree_.assign(1, {});
    std::vector<uint32_t> all(inputs_.size());
    std::iota(all.begin(), all.end(), 0U);
    Split(0, std::move(all), 0);
    return std::move(tree_);
  }

 private:
  struct Choice {
    int input = -1;
    int bin = 0;  // the last one below
    double gain = 1e-9;
  };

  void MakeBins(size_t input) {
    std::vector<float> values;
    for (const auto& row : inputs_) values.push_back(row[input]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<float>& edges = edges_.emplace_back();
    const size_t bins = std::min<size_t>(values.size(), kBins);
    for (size_t bin = 1; bin < bins; ++bin) {
      const size_t at = bin * values.size() / bins;
      edges.push_back((values[at - 1] + values[at]) / 2);
    }
    std::vector<uint8_t>& of_rows = bins_.emplace_back();
    for (const auto& row : inputs_) {
      of_rows.push_back(static_cast<uint8_t>(
          std::lower_bound(edges.begin(), edges.end(), row[input]) - edges.begin()));
    }
  }

  double MeanOf(const std::vector<uint32_t>& rows) const {
    double sum = 0;
    for (const uint32_t row : rows) sum += (*residuals_)[row];
    return sum / static_cast<double>(rows.size());
  }

  // Returns the split with the largest decrease of the squared error.
  Choice Choose(const std::vector<uint32_t>& rows) const {
    Choice best;
    for (size_t input = 0; input < edges_.size(); ++input) {
      double sums[kBins] = {};
      int counts[kBins] = {};
      for (const uint32_t row : rows) {
        sums[bins_[input][row]] += (*residuals_)[row];
        ++counts[bins_[input][row]];
      }
      const double all = std::accumulate(sums, sums + kBins, 0.0);
      const auto count = static_cast<double>(rows.size());
      double below = 0;
      int below_count = 0;
      for (size_t bin = 0; bin < edges_[input].size(); ++bin) {
        below += sums[bin];
        below_count += counts[bin];
        const double above_count = count - below_count;
        if (below_count < options_.samples_min || above_count < options_.samples_min) continue;
        const double gain = below * below / below_count +
                            (all - below) * (all - below) / above_count - all * all / count;
        if (gain > best.gain) best = {static_cast<int>(input), static_cast<int>(bin), gain};
      }
    }
    return best;
  }

  void Split(size_t node, std::vector<uint32_t> rows, int depth) {
    tree_[node].value = options_.learning_rate * MeanOf(rows);
    if (depth >= options_.depth) return;
    const Choice choice = Choose(rows);
    if (choice.input < 0) return;
    const auto input = static_cast<size_t>(choice.input);
    const auto middle = std::stable_partition(
        rows.begin(), rows.end(), [&](uint32_t row) { return bins_[input][row] <= choice.bin; });
    std::vector<uint32_t> above(middle, rows.end());
    rows.erase(middle, rows.end());
    const size_t below = tree_.size();
    tree_[node].input = choice.input;
    tree_[node].threshold = edges_[input][static_cast<size_t>(choice.bin)];
    tree_[node].below = static_cast<int>(below);
    tree_.resize(below + 2);
    Split(below, std::move(rows), depth + 1);
    Split(below + 1, std::move(above), depth + 1);
  }

  const std::vector<std::vector<float>>& inputs_;
  const CostModel::Options& options_;
  std::vector<std::vector<float>> edges_;   // by input, ascending
  std::vector<std::vector<uint8_t>> bins_;  // by input and row
  const std::vector<double>* residuals_ = nullptr;
  CostModel::Tree tree_;
};

CostModel CostModel::Fit(absl::Span<const CostSample> samples, const Options& options) {
  CostModel model;
  if (samples.empty()) return model;
  std::vector<std::vector<float>> inputs;
  std::vector<double> residuals;
  for (const CostSample& sample : samples) {
    inputs.push_back(InputsOf(sample.heuristic, sample.features));
    residuals.push_back(sample.log_ratio);
    model.mean_ += sample.log_ratio / static_cast<double>(samples.size());
  }
  for (double& residual : residuals) residual -= model.mean_;
  TreeGrower grower(inputs, options);
  for (int i = 0; i < options.trees; ++i) {
    model.trees_.push_back(grower.Grow(residuals));
    for (size_t row = 0; row < inputs.size(); ++row)
      residuals[row] -= ValueOf(model.trees_.back(), inputs[row]);
  }
  return model;
}

double CostModel::ValueOf(const Tree& tree, const std::vector<float>& inputs) {
  size_t node = 0;
  while (tree[node].input >= 0) {
    const bool above = inputs[static_cast<size_t>(tree[node].input)] > tree[node].threshold;
    node = static_cast<size_t>(tree[node].below) + (above ? 1 : 0);
  }
  return tree[node].value;
}

double CostModel::Predict(const Features& heuristic, const Features& features) const {
  if (trees_.empty()) return mean_;
  const std::vector<float> inputs = InputsOf(heuristic, features);
  double sum = mean_;
  for (const Tree& tree : trees_) sum += ValueOf(tree, inputs);
  return sum;
}

double RankCorrelation(absl::Span<const double> predictions, absl::Span<const double> times) {
  KILN_CHECK_EQ(predictions.size(), times.size());
  if (predictions.empty()) return 0;
  const std::vector<double> a = RanksOf(predictions), b = RanksOf(times);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    of_a += (a[i] - mean) * (a[i] - mean);
    of_b += (b[i] - mean) * (b[i] - mean);
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : 0;
}

double Regret(absl::Span<const double> predictions, absl::Span<const double> times, size_t count) {
  KILN_CHECK_EQ(predictions.size(), times.size());
  KILN_CHECK(!times.empty());
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return predictions[a] < predictions[b]; });
  order.resize(std::min(order.size(), std::max<size_t>(count, 1)));
  double chosen = times[order[0]];
  for (const size_t candidate : order) chosen = std::min(chosen, times[candidate]);
  return chosen / *std::min_element(times.begin(), times.end()) - 1;
}

}  // namespace kiln::search
