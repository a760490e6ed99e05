#include "server/metrics/program_times.h"

#include <prometheus/client_metric.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/metrics/buckets.h"

namespace kiln::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;

constexpr char kOther[] = "other";

Histogram::BucketBoundaries RunBuckets() { return Buckets(1e-6, 100); }
Histogram::BucketBoundaries KernelBuckets() { return Buckets(1e-6, 1); }

// Both have the same buckets.
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

}  // namespace

ProgramTimes::Times::Times(bool has_name) : has_name(has_name), runs(RunBuckets()) {}

Histogram& ProgramTimes::KernelOf(Kernels& kernels, absl::string_view name) {
  return kernels.try_emplace(std::string(name), KernelBuckets()).first->second;
}

ProgramTimes::User& ProgramTimes::FindUser(absl::string_view name) {
  const auto known = users_.find(name);
  if (known != users_.end()) return known->second;
  return users_[users_.size() < kMaxUserNames ? name : kOther];
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
  if (own >= kMaxProgramNames - programs_ + idle_) return OthersOf(user);
  if (programs_ >= kMaxProgramNames) DropMostIdle();
  ++programs_;
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
  const auto dropped = std::move(most->second);
  user->programs.erase(most);
  Times& others = OthersOf(*user);
  AddTo(dropped->runs, others.runs);
  for (const auto& [name, histogram] : dropped->kernels) {
    AddTo(histogram, KernelOf(others.kernels, kOther));
    if (name == kOther) continue;
    --user->kernels;
    --kernels_;
  }
  --user->idle;
  --idle_;
  --programs_;
}

void ProgramTimes::RunFinished(const RunLabels& run, double seconds) {
  absl::MutexLock lock(&mutex_);
  Find(FindUser(run.user), run.program).runs.Observe(seconds);
}

void ProgramTimes::KernelRan(const RunLabels& run, absl::string_view kernel, double seconds) {
  absl::MutexLock lock(&mutex_);
  User& user = FindUser(run.user);
  Times& times = Find(user, run.program);
  const auto known = times.kernels.find(kernel);
  if (known != times.kernels.end()) return known->second.Observe(seconds);
  const bool has_name = times.has_name && user.kernels < kMaxKernelNames - kernels_;
  if (has_name) {
    ++user.kernels;
    ++kernels_;
  }
  KernelOf(times.kernels, has_name ? kernel : kOther).Observe(seconds);
}

void ProgramTimes::Age(User& user, Times& times) {
  if (std::exchange(times.has_run, false)) return;
  if (++times.idle_scrapes != kIdleScrapes) return;
  ++user.idle;
  ++idle_;
}

void ProgramTimes::Scrape(MetricFamily& programs, MetricFamily& kernels) {
  absl::MutexLock lock(&mutex_);
  for (auto& [user_name, user] : users_) {
    const auto add = [&](const std::string& program, const Times& times) {
      std::vector<ClientMetric::Label> labels = {
          {"device", device_}, {"user", user_name}, {"program", program}};
      AddSample(times.runs, labels, programs);
      labels.push_back({"kernel", ""});
      for (const auto& [kernel, histogram] : times.kernels) {
        labels.back().value = kernel;
        AddSample(histogram, labels, kernels);
      }
    };
    for (const auto& [program, times] : user.programs) {
      add(program, *times);
      Age(user, *times);
    }
    if (user.others != nullptr) add(kOther, *user.others);
  }
}

}  // namespace kiln::metrics
