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

// Returns the largest relative error of rounding to the dtype; 0 for integers.
double RoundingOf(ir::DType dtype) {
  return ir::IsFloat(dtype) ? std::ldexp(1, -ir::FormatOf(dtype).mantissa_bits - 1) : 0;
}

int64_t TermsOf(const kernel::Stage& stage) {
  int64_t terms = 1;
  for (const ir::Node* range : stage.reduce_ranges) terms *= ir::ExtentOf(range);
  return terms;
}

// Returns the root mean square of the finite elements.
double MagnitudeOf(ir::DType dtype, const char* data, int64_t elements) {
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < elements; ++i) {
    const double value = kernel::ElementAt(dtype, data, i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++finite;
  }
  return std::sqrt(sum / static_cast<double>(std::max<int64_t>(finite, 1)));
}

bool IsNear(double want, double got, double relative, double magnitude) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (want == got) return true;
  if (!std::isfinite(want) || !std::isfinite(got)) return false;
  return std::abs(want - got) <= relative * std::max(std::abs(want), magnitude);
}

absl::Status CompareBuffer(int number, ir::DType dtype, const std::vector<char>& want,
                           const std::vector<char>& got, double tolerance) {
  if (want == got) return absl::OkStatus();
  const auto elements = static_cast<int64_t>(want.size()) / ir::SizeOf(dtype);
  const bool is_float = ir::IsFloat(dtype);
  const double magnitude = is_float ? MagnitudeOf(dtype, want.data(), elements) : 0;
  for (int64_t i = 0; i < elements; ++i) {
    const double should_be = kernel::ElementAt(dtype, want.data(), i);
    const double is = kernel::ElementAt(dtype, got.data(), i);
    if (IsNear(should_be, is, is_float ? tolerance : 0, magnitude)) continue;
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

absl::Status CompareResults(const kernel::Kernel& kernel, const Outputs& want, const Outputs& got,
                            double tolerance) {
  KILN_CHECK_EQ(want.size(), got.size());
  for (const auto& [number, bytes] : want) {
    const ir::DType dtype = kernel.buffers[static_cast<size_t>(number)].dtype;
    const std::vector<char>& other = got.at(number);
    KILN_CHECK_EQ(bytes.size(), other.size());
    const absl::Status status = CompareBuffer(number, dtype, bytes, other, tolerance);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::tuner
