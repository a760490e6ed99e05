#include "server/tuner/compare_results.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/sample_inputs.h"
#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

// Roundings of a value besides those of sums, and those of a sum for each root of its terms, with
// margins: the largest of millions of errors is several times the usual one.
constexpr double kRoundings = 16;
constexpr double kRoundingsOfSums = 8;
// A result may differ by this many spreads. A perturbation at random may by chance change an
// element by little.
constexpr double kSpreads = 4;

// Returns the largest relative error of rounding to the dtype; 0 for integers.
double RoundingOf(ir::DType dtype) {
  return ir::IsFloat(dtype) ? std::ldexp(1, -ir::FormatOf(dtype).mantissa_bits - 1) : 0;
}

int64_t TermsOf(const kernel::Stage& stage) {
  int64_t terms = 1;
  for (const ir::Node* range : stage.reduce_ranges) terms *= ir::ExtentOf(range);
  return terms;
}

// Collects the root mean square of the finite numbers among those that are added.
class RootMeanSquare {
 public:
  void Add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value * value;
    ++count_;
  }
  double value() const {
    return std::sqrt(sum_ / static_cast<double>(std::max<int64_t>(count_, 1)));
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// The differences that a buffer's elements may have.
class Allowance {
 public:
  Allowance(ir::DType dtype, const std::vector<char>& want, double tolerance,
            const std::vector<double>* spread)
      : tolerance_(tolerance), spread_(spread) {
    RootMeanSquare values, spreads;
    const auto elements = static_cast<int64_t>(want.size()) / ir::SizeOf(dtype);
    for (int64_t i = 0; i < elements; ++i) values.Add(kernel::ElementAt(dtype, want.data(), i));
    magnitude_ = values.value();
    if (spread == nullptr) return;
    for (const double value : *spread) spreads.Add(value);
    usual_spread_ = spreads.value();
  }

  bool Allows(size_t element, double want, double got) const {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    if (want == got) return true;
    if (!std::isfinite(want) || !std::isfinite(got)) return false;
    double allowed = tolerance_ * std::max(std::abs(want), magnitude_);
    if (spread_ != nullptr) allowed += kSpreads * std::max((*spread_)[element], usual_spread_);
    return std::abs(want - got) <= allowed;
  }

 private:
  const double tolerance_;
  const std::vector<double>* spread_;
  double magnitude_ = 0;
  double usual_spread_ = 0;
};

absl::Status CompareBuffer(int number, ir::DType dtype, const std::vector<char>& want,
                           const std::vector<char>& got, double tolerance,
                           const std::vector<double>* spread) {
  if (want == got) return absl::OkStatus();
  const auto elements = static_cast<int64_t>(want.size()) / ir::SizeOf(dtype);
  const Allowance allowance(dtype, want, tolerance, spread);
  for (int64_t i = 0; i < elements; ++i) {
    const double should_be = kernel::ElementAt(dtype, want.data(), i);
    const double is = kernel::ElementAt(dtype, got.data(), i);
    const bool allowed = ir::IsFloat(dtype)
                             ? allowance.Allows(static_cast<size_t>(i), should_be, is)
                             : should_be == is;
    if (allowed) continue;
    return absl::DataLossError(absl::StrFormat("element %d of buffer b%d is %.9g instead of %.9g",
                                               i, number, is, should_be));
  }
  return absl::OkStatus();
}

}  // namespace

double ToleranceOf(const kernel::Kernel& kernel) {
  double rounding = 0;
  double roundings = kRoundings;
  for (const kernel::Stage& stage : kernel.stages) {
    // Each stage may use the sums of those before it.
    if (!stage.reduce_ranges.empty()) {
      roundings += kRoundingsOfSums * std::sqrt(static_cast<double>(TermsOf(stage)));
    }
    for (const kernel::Store& store : stage.stores) {
      for (const ir::Node* node : ir::TopologicalOrder({&store.value, 1})) {
        // Loading rounds nothing.
        if (node->op() != ir::Op::kLoad) rounding = std::max(rounding, RoundingOf(node->dtype()));
      }
    }
  }
  return rounding * roundings;
}

void AddSpread(const kernel::Kernel& kernel, const Outputs& want, const Outputs& perturbed,
               Spread* spread) {
  for (const auto& [number, bytes] : want) {
    const ir::DType dtype = kernel.buffers[static_cast<size_t>(number)].dtype;
    std::vector<double>& differences = (*spread)[number];
    differences.resize(bytes.size() / static_cast<size_t>(ir::SizeOf(dtype)), 0);
    for (size_t i = 0; i < differences.size(); ++i) {
      const auto element = static_cast<int64_t>(i);
      const double difference =
          std::abs(kernel::ElementAt(dtype, bytes.data(), element) -
                   kernel::ElementAt(dtype, perturbed.at(number).data(), element));
      if (std::isfinite(difference)) differences[i] = std::max(differences[i], difference);
    }
  }
}

absl::Status CompareResults(const kernel::Kernel& kernel, const Outputs& want, const Outputs& got,
                            double tolerance, const Spread& spread) {
  KILN_CHECK_EQ(want.size(), got.size());
  for (const auto& [number, bytes] : want) {
    const ir::DType dtype = kernel.buffers[static_cast<size_t>(number)].dtype;
    const std::vector<char>& other = got.at(number);
    KILN_CHECK_EQ(bytes.size(), other.size());
    const auto found = spread.find(number);
    const absl::Status status = CompareBuffer(number, dtype, bytes, other, tolerance,
                                              found == spread.end() ? nullptr : &found->second);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::tuner
