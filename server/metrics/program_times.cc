#include "server/metrics/program_times.h"

#include <prometheus/client_metric.h>

#include <memory>
#include <utility>
#include <vector>

#include "proto/check/check.h"
#include "server/metrics/buckets.h"

namespace kiln::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;

constexpr char kOther[] = "other";
constexpr char kOutside[] = "outside_kernels";

Histogram::BucketBoundaries RunBuckets() { return Buckets(1e-6, 100); }
Histogram::BucketBoundaries KernelBuckets() { return Buckets(1e-6, 1); }

// Requires: both have the same buckets.
void AddTo(const Histogram& from, Histogram& to) {
  const prometheus::ClientMetric::Histogram counts = from.Collect().histogram;
  std::vector<double> increments;
  uint64_t below = 0;
  for (const auto& bucket : counts.bucket) {
    increments.push_back(static_cast<double>(bucket.cumulative_count - below));
    below = bucket.cumulative_count;
  }
  to.ObserveMultiple(increments, counts.sample_sum);
}

void AddSample(const Histogram& histogram, const std::vector<ClientMetric::Label>& labels,
               MetricFamily& family) {
  family.metric.push_back(histogram.Collect());
  family.metric.back().label = labels;
}

void AddCount(double count, const std::vector<ClientMetric::Label>& labels, MetricFamily& family) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = labels;
  metric.counter.value = count;
}

}  // namespace

ProgramTimes::Kernel::Kernel() : launches(KernelBuckets()) {}

ProgramTimes::Times::Times(bool has_name) : has_name(has_name), runs(RunBuckets()) {}

ProgramTimes::Kernel& ProgramTimes::FindKernel(User& user, Times& times, absl::string_view name) {
  const auto known = times.kernels.find(name);
  if (known != times.kernels.end()) return known->second;
  const bool has_name = times.has_name && user.kernels < kKernelNamesMax - kernels_;
  if (has_name) {
    ++user.kernels;
    ++kernels_;
    KILN_CHECK_LE(kernels_, kKernelNamesMax);
  }
  return times.kernels[has_name ? std::string(name) : kOther];
}

void ProgramTimes::Divide(User& user, Times& times) {
  const double seconds = std::exchange(times.undivided_seconds, 0);
  if (seconds == 0) return;
  KILN_CHECK_NE(times.shares, nullptr);
  for (const KernelShares::Share& share : times.shares->kernels)
    FindKernel(user, times, share.kernel).seconds += seconds * share.share;
  times.outside_seconds += seconds * times.shares->outside;
}

ProgramTimes::User& ProgramTimes::FindUser(absl::string_view name) {
  const auto known = users_.find(name);
  if (known != users_.end()) return known->second;
  return users_[users_.size() < kUserNamesMax ? name : kOther];
}

ProgramTimes::Times& ProgramTimes::OthersOf(User& user) {
  if (user.others == nullptr) user.others = std::make_unique<Times>(false);
  return *user.others;
}

ProgramTimes::Times& ProgramTimes::Find(User& user, absl::string_view program) {
  const auto known = user.programs.find(program);
  if (known != user.programs.end()) {
    Times& times = *known->second;
    if (times.is_idle()) {
      --user.idle;
      --idle_;
    }
    times.idle_scrapes = 0;
    times.has_run = true;
    return times;
  }
  const int own = static_cast<int>(user.programs.size()) - user.idle;
  if (own >= kProgramNamesMax - programs_ + idle_) return OthersOf(user);
  if (programs_ >= kProgramNamesMax) DropMostIdle();
  ++programs_;
  KILN_CHECK_LE(programs_, kProgramNamesMax);
  return *user.programs.try_emplace(program, std::make_unique<Times>(true)).first->second;
}

void ProgramTimes::DropMostIdle() {
  User* user = nullptr;
  decltype(User::programs)::iterator most;
  for (auto& [name, each] : users_) {
    for (auto program = each.programs.begin(); program != each.programs.end(); ++program) {
      if (user != nullptr && program->second->idle_scrapes <= most->second->idle_scrapes) continue;
      user = &each;
      most = program;
    }
  }
  KILN_CHECK_NE(user, nullptr);
  const auto dropped = std::move(most->second);
  KILN_CHECK(dropped->is_idle());
  Divide(*user, *dropped);
  user->programs.erase(most);
  Times& others = OthersOf(*user);
  AddTo(dropped->runs, others.runs);
  others.outside_seconds += dropped->outside_seconds;
  for (const auto& [name, kernel] : dropped->kernels) {
    Kernel& other = others.kernels[kOther];
    AddTo(kernel.launches, other.launches);
    other.seconds += kernel.seconds;
    if (name == kOther) continue;
    --user->kernels;
    --kernels_;
  }
  --user->idle;
  --idle_;
  --programs_;
  KILN_CHECK_GE(idle_, 0);
  KILN_CHECK_GE(kernels_, 0);
  KILN_CHECK_LT(programs_, kProgramNamesMax);
}

void ProgramTimes::RunFinished(const RunLabels& run, double seconds,
                               const std::shared_ptr<const KernelShares>& shares) {
  absl::MutexLock lock(&mutex_);
  User& user = FindUser(run.user);
  Times& times = Find(user, run.program);
  times.runs.Observe(seconds);
  if (shares == nullptr) {
    times.outside_seconds += seconds;
  } else if (!times.has_name) {
    // Programs without names share these times, so each run is divided by its own shares.
    times.outside_seconds += seconds * shares->outside;
    times.kernels[kOther].seconds += seconds * (1 - shares->outside);
  } else {
    if (times.shares != shares) Divide(user, times);
    times.shares = shares;
    times.undivided_seconds += seconds;
  }
  KILN_VALIDATE(*this, entries());
}

void ProgramTimes::KernelRan(const RunLabels& run, absl::string_view kernel, double seconds) {
  absl::MutexLock lock(&mutex_);
  User& user = FindUser(run.user);
  FindKernel(user, Find(user, run.program), kernel).launches.Observe(seconds);
  KILN_VALIDATE(*this, entries());
}

void ProgramTimes::Age(User& user, Times& times) {
  if (std::exchange(times.has_run, false)) return;
  if (++times.idle_scrapes != kIdleScrapes) return;
  ++user.idle;
  ++idle_;
}

void ProgramTimes::Scrape(Families& families) {
  absl::MutexLock lock(&mutex_);
  for (auto& [user_name, user] : users_) {
    const auto add = [&, &user = user](const std::string& program, Times& times)
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                           Divide(user, times);
                           std::vector<ClientMetric::Label> labels = {
                               {"device", device_}, {"user", user_name}, {"program", program}};
                           AddSample(times.runs, labels, families.programs);
                           labels.push_back({"kernel", kOutside});
                           AddCount(times.outside_seconds, labels, families.kernel_seconds);
                           for (const auto& [name, kernel] : times.kernels) {
                             labels.back().value = name;
                             AddSample(kernel.launches, labels, families.kernels);
                             AddCount(kernel.seconds, labels, families.kernel_seconds);
                           }
                         };
    for (const auto& [program, times] : user.programs) {
      add(program, *times);
      Age(user, *times);
    }
    if (user.others != nullptr) add(kOther, *user.others);
  }
  KILN_VALIDATE(*this, entries());
}

void ProgramTimes::Validate() const {
  size_t programs = 0;
  int idle = 0, kernels = 0;
  for (const auto& [name, user] : users_) {
    ValidateUser(name, user);
    programs += user.programs.size();
    idle += user.idle;
    kernels += user.kernels;
  }
  KILN_CHECK_LE(users_.size(), kUserNamesMax + 1);  // one is "other"
  KILN_CHECK_EQ(programs, programs_);
  KILN_CHECK_EQ(idle, idle_);
  KILN_CHECK_EQ(kernels, kernels_);
  KILN_CHECK_LE(programs_, kProgramNamesMax);
  KILN_CHECK_LE(kernels_, kKernelNamesMax);
}

void ProgramTimes::ValidateUser(const std::string& name, const User& user) {
  int idle = 0, kernels = 0;
  for (const auto& [program, times] : user.programs) {
    KILN_CHECK(times != nullptr && times->has_name) << name << " " << program;
    KILN_CHECK(times->undivided_seconds == 0 || times->shares != nullptr) << name << " " << program;
    idle += times->is_idle() ? 1 : 0;
    for (const auto& [kernel, of_kernel] : times->kernels) kernels += kernel == kOther ? 0 : 1;
  }
  KILN_CHECK_EQ(user.idle, idle) << name;
  KILN_CHECK_EQ(user.kernels, kernels) << name;
  if (user.others == nullptr) return;
  KILN_CHECK(!user.others->has_name) << name;
  KILN_CHECK_EQ(user.others->undivided_seconds, 0) << name;
  KILN_CHECK_LE(user.others->kernels.size(), 1) << name;  // "other"
}

}  // namespace kiln::metrics
