#include "server/runtime/device/managed_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::runtime {

ManagedDevice::ManagedDevice(std::unique_ptr<drivers::Device> device, int64_t memory_limit,
                             metrics::DeviceMetrics* metrics, Clock clock,
                             fairness::QueueLimits limits, trace::Recorder* trace_recorder)
    : device_(std::move(device)),
      pool_(std::make_shared<buffers::Pool>(*device_, memory_limit)),
      arenas_(pool_),
      metrics_(metrics),
      trace_recorder_(trace_recorder),
      clock_(std::move(clock)),
      dispatcher_(name(), clock_.steady, limits) {
  pool_->SetReclaimer([this] { arenas_.DropIdle(); });
  pool_->SetRecorder(trace_recorder_);
}

ManagedDevice::~ManagedDevice() {
  // A failed device returns its error, which cannot be handled here.
  device_->Synchronize().IgnoreError();
  absl::MutexLock lock(&holds_mutex_);
  KILN_CHECK_EQ(holds_, 0) << name();
}

void ManagedDevice::Validate() const {
  // So a condemned device is never revived.
  KILN_CHECK(!condemned_ || !failure_.ok()) << name();
  KILN_CHECK(failure_.ok() || absl::IsUnavailable(failure_)) << name();
  KILN_CHECK(unresponsive_.ok() || absl::IsUnavailable(unresponsive_)) << name();
}

bool ManagedDevice::WaitIdle(absl::Duration timeout) {
  const absl::Time deadline = clock_.steady() + timeout;
  if (!dispatcher_.WaitIdle(timeout)) return false;
  {
    absl::MutexLock lock(&holds_mutex_);
    const auto is_free = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return holds_ == 0; };
    if (!holds_mutex_.AwaitWithTimeout(absl::Condition(&is_free), deadline - clock_.steady()))
      return false;
  }
  // The end of a list may start a copy of its result.
  return pool_->WaitForCopies(deadline - clock_.steady());
}

void ManagedDevice::Hold() {
  absl::MutexLock lock(&holds_mutex_);
  ++holds_;
}

void ManagedDevice::Release() {
  absl::MutexLock lock(&holds_mutex_);
  KILN_CHECK_GT(holds_, 0) << name();
  --holds_;
}

Health ManagedDevice::health() const {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok() || !unresponsive_.ok()) return Health::kFailed;
  return draining_ ? Health::kDraining : Health::kHealthy;
}

std::string ManagedDevice::health_message() const {
  absl::MutexLock lock(&mutex_);
  return std::string((failure_.ok() ? unresponsive_ : failure_).message());
}

absl::Status ManagedDevice::CheckUsable(bool new_work) const {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (new_work && !unresponsive_.ok()) return unresponsive_;
  // A draining device finishes the work that its sessions have begun.
  if (!draining_ || !new_work) return absl::OkStatus();
  return errors::WithReason(
      absl::UnavailableError(
          absl::StrCat("device ", name(), " is draining and accepts no new sessions or programs")),
      "DRAINING", {{"device", name()}});
}

void ManagedDevice::SetHealthObserver(HealthObserver observer) {
  {
    absl::MutexLock lock(&report_mutex_);
    observer_ = std::move(observer);
  }
  ReportHealth();
}

void ManagedDevice::ReportHealth() {
  absl::MutexLock lock(&report_mutex_);
  if (observer_) observer_(*this);
}

void ManagedDevice::SetDraining(bool draining) {
  {
    absl::MutexLock lock(&mutex_);
    draining_ = draining;
  }
  ReportHealth();
}

absl::Status ManagedDevice::FailedBecause(absl::string_view why) const {
  return errors::WithReason(absl::UnavailableError(absl::StrCat("device ", name(), " failed: ", why,
                                                                "; use another device")),
                            "DEVICE_FAILED", {{"device", name()}});
}

void ManagedDevice::Condemn(const std::string& why) {
  {
    absl::MutexLock lock(&mutex_);
    condemned_ = true;
    failure_ = FailedBecause(absl::StrCat("it computes wrong numbers (", why,
                                          ") and is not used until kilnd is restarted"));
    KILN_VALIDATE(*this, 1);
  }
  log::Error("device_condemned", {{"device", name()}, {"why", why}});
  ReportHealth();
}

void ManagedDevice::SetUnresponsive(const std::string& why) {
  {
    absl::MutexLock lock(&mutex_);
    unresponsive_ =
        why.empty()
            ? absl::OkStatus()
            : errors::WithReason(absl::UnavailableError(absl::StrCat(
                                     "device ", name(), " does not answer: ", why,
                                     "; until it does, it accepts no new sessions or programs")),
                                 "DEVICE_UNRESPONSIVE", {{"device", name()}});
    KILN_VALIDATE(*this, 1);
  }
  if (why.empty()) {
    log::Info("device_answers", {{"device", name()}});
  } else {
    log::Error("device_unresponsive", {{"device", name()}, {"why", why}});
  }
  ReportHealth();
}

absl::Status ManagedDevice::AfterFailure(const absl::Status& error) {
  const absl::Status health = device_->Health();
  if (health.ok()) return error;
  const absl::Status failure = FailedBecause(health.message());
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    failure_ = failure;
    KILN_VALIDATE(*this, 1);
  }
  // Logged once, for the list that failed first, although all lists on the device fail.
  log::Error("device_failed", {{"device", name()}, {"why", std::string(health.message())}});
  ReportHealth();
  return failure;
}

bool ManagedDevice::TryRevive() {
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok() || condemned_) return false;
  }
  // Work in flight ends with the device's error; nothing new starts before failure_ is OK.
  if (!WaitIdle(absl::ZeroDuration())) return false;
  if (absl::Status status = device_->Revive(); !status.ok()) {
    log::Debug("device_not_revived", {{"device", name()}, {"why", std::string(status.message())}});
    return false;
  }
  pool_->BeginLife();
  arenas_.DropIdle();
  {
    absl::MutexLock lock(&mutex_);
    failure_ = absl::OkStatus();
  }
  log::Info("device_revived", {{"device", name()}});
  ReportHealth();
  return true;
}

double ManagedDevice::Utilization(absl::Time steady_now) {
  const double seconds = dispatcher_.device_seconds();
  absl::MutexLock lock(&mutex_);
  const double passed = absl::ToDoubleSeconds(steady_now - utilization_since_);
  // The share always covers a second or more, no matter how often it is read.
  if (passed < 1) return utilization_;
  utilization_ = std::clamp((seconds - seconds_then_) / passed, 0.0, 1.0);
  utilization_since_ = steady_now;
  seconds_then_ = seconds;
  return utilization_;
}

}  // namespace kiln::runtime
