#include "server/runtime/program/kernel_samples.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {

KernelSamples::KernelSamples(const compiler::CompiledProgram& program)
    : program_(program),
      launches_(program.kernels.size()),
      lowest_(program.kernels.size(), std::numeric_limits<double>::infinity()) {
  for (const compiler::KernelCall& call : program.calls) {
    KILN_CHECK_GE(call.kernel, 0);
    KILN_CHECK_LT(call.kernel, launches_.size());
    ++launches_[call.kernel];
  }
}

bool KernelSamples::Add(double run_seconds, absl::Span<const double> call_seconds) {
  const bool is_cold = kept_.empty();
  if (warm_runs_ == 0) {
    // The first warm run replaces the cold one.
    kept_.clear();
    std::fill(lowest_.begin(), lowest_.end(), std::numeric_limits<double>::infinity());
  }
  Sample sample{run_seconds, std::vector<double>(launches_.size())};
  const size_t calls = std::min(call_seconds.size(), program_.calls.size());
  for (size_t i = 0; i < calls; ++i) {
    const int kernel = program_.calls[i].kernel;
    sample.launch_seconds[kernel] += call_seconds[i] / launches_[kernel];
    lowest_[kernel] = std::min(lowest_[kernel], call_seconds[i]);
  }
  if (kept_.size() < kKeptMax) {
    kept_.push_back(std::move(sample));
  } else {
    kept_[warm_runs_ % kKeptMax] = std::move(sample);
  }
  if (!is_cold) ++warm_runs_;
  UpdateShares();
  KILN_VALIDATE(*this, kept_.size());
  return !is_cold;
}

void KernelSamples::Validate() const {
  // The cold run until there is a warm one, then the latest warm ones.
  const auto expected = std::min<size_t>(std::max<int64_t>(warm_runs_, 1), kKeptMax);
  KILN_CHECK_EQ(kept_.size(), expected);
  KILN_CHECK_EQ(launches_.size(), program_.kernels.size());
  KILN_CHECK_EQ(lowest_.size(), launches_.size());
  for (const Sample& sample : kept_) KILN_CHECK_EQ(sample.launch_seconds.size(), launches_.size());
  KILN_CHECK_NE(shares_, nullptr);
  KILN_CHECK(shares_->kernels.empty() || shares_->kernels.size() == launches_.size());
}

double KernelSamples::Median(size_t kernel) const {
  std::vector<double> seconds;
  for (const Sample& sample : kept_) seconds.push_back(sample.launch_seconds[kernel]);
  KILN_CHECK(!seconds.empty());
  const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  if (seconds.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(seconds.begin(), middle)) / 2;
}

std::vector<KernelTimes> KernelSamples::Times() const {
  std::vector<KernelTimes> times;
  for (size_t i = 0; i < launches_.size(); ++i) {
    KernelTimes& of_kernel = times.emplace_back(KernelTimes{.launches = launches_[i]});
    if (kept_.empty() || launches_[i] == 0) continue;
    of_kernel.is_cold = warm_runs_ == 0;
    of_kernel.samples = std::max<int64_t>(warm_runs_, 1) * launches_[i];
    of_kernel.median_seconds = Median(i);
    of_kernel.lowest_seconds = lowest_[i];
  }
  return times;
}

void KernelSamples::UpdateShares() {
  auto shares = std::make_shared<metrics::KernelShares>();
  std::vector<double> seconds(launches_.size());
  double total = 0;
  for (const Sample& sample : kept_) {
    double in_kernels = 0;
    for (size_t i = 0; i < seconds.size(); ++i) {
      const double of_run = sample.launch_seconds[i] * launches_[i];
      seconds[i] += of_run;
      in_kernels += of_run;
    }
    total += std::max(sample.run_seconds, in_kernels);
  }
  shares->outside = 1;
  for (size_t i = 0; i < seconds.size() && total > 0; ++i) {
    shares->kernels.push_back({program_.kernels[i].image.name, seconds[i] / total});
    shares->outside -= seconds[i] / total;
  }
  shares->outside = std::max(shares->outside, 0.0);
  shares_ = std::move(shares);
}

int64_t KernelSamples::HostBytes(const compiler::CompiledProgram& program) {
  constexpr size_t kPerShare = 128;  // including its name
  const size_t of_kernel = kPerShare + (kKeptMax + 2) * sizeof(double);
  return static_cast<int64_t>(program.kernels.size() * of_kernel + kKeptMax * sizeof(Sample));
}

}  // namespace kiln::runtime
