#include "server/runtime/managed_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::runtime {

ManagedDevice::ManagedDevice(std::unique_ptr<drivers::Device> device, int64_t memory_limit,
                             metrics::DeviceMetrics* metrics, std::function<absl::Time()> now)
    : device_(std::move(device)),
      pool_(std::make_shared<buffers::Pool>(*device_, memory_limit)),
      metrics_(metrics),
      now_(std::move(now)),
      dispatcher_(name(), now_) {
  pool_->SetReclaimer([this] { DropIdleArena(); });
}

ManagedDevice::~ManagedDevice() {
  // A failed device answers with its error, and nothing more can be done.
  device_->Synchronize().IgnoreError();
}

bool ManagedDevice::WaitIdle(absl::Duration timeout) {
  const absl::Time deadline = now_() + timeout;
  // A list's end may start a copy of its result.
  return dispatcher_.WaitIdle(timeout) && pool_->WaitForCopies(deadline - now_());
}

void ManagedDevice::DropIdleArena() {
  // Must not take arena_mutex_: ArenaFor holds that while it allocates, which may bring us here.
  std::shared_ptr<Arena> idle;  // goes without the lock
  absl::MutexLock lock(&mutex_);
  // Nobody but ArenaFor, under the lock, can make this a shared one again.
  if (arena_.use_count() == 1) idle = std::move(arena_);
}

absl::StatusOr<std::shared_ptr<Arena>> ManagedDevice::ArenaFor(int64_t bytes) {
  absl::MutexLock making(&arena_mutex_);
  {
    std::shared_ptr<Arena> smaller;  // goes without the lock, and first: both might not fit
    absl::MutexLock lock(&mutex_);
    if (arena_ && !arena_->lost() && arena_->buffer()->bytes() >= bytes) return arena_;
    smaller = std::move(arena_);
  }
  const int64_t life = pool_->life();
  auto buffer = pool_->AllocateBytes(bytes);
  if (!buffer.ok()) return buffer.status();
  auto arena = std::make_shared<Arena>(pool_, std::move(*buffer), life);
  absl::MutexLock lock(&mutex_);
  arena_ = arena;
  return arena;
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
  // A draining device finishes what its sessions have begun.
  if (!draining_ || !new_work) return absl::OkStatus();
  return errors::WithReason(
      absl::UnavailableError(
          absl::StrCat("device ", name(), " is draining and takes no new sessions and programs")),
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
  return errors::WithReason(absl::UnavailableError(absl::StrCat(
                                "device ", name(), " has failed: ", why, "; use another device")),
                            "DEVICE_FAILED", {{"device", name()}});
}

void ManagedDevice::Condemn(const std::string& why) {
  {
    absl::MutexLock lock(&mutex_);
    condemned_ = true;
    failure_ = FailedBecause(absl::StrCat("it computes wrong numbers (", why,
                                          "), and stays out until kilnd is started ", "again"));
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
                                     "; it takes no new sessions and programs before it does")),
                                 "DEVICE_UNRESPONSIVE", {{"device", name()}});
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
  }
  // Once, by whichever list failed first, though everything on the device fails with it.
  log::Error("device_failed", {{"device", name()}, {"why", std::string(health.message())}});
  ReportHealth();
  return failure;
}

bool ManagedDevice::TryRevive() {
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok() || condemned_) return false;
  }
  // What is in flight ends with the device's error; nothing new starts before failure_ is OK.
  if (!WaitIdle(absl::ZeroDuration())) return false;
  if (absl::Status status = device_->Revive(); !status.ok()) {
    log::Debug("device_not_revived", {{"device", name()}, {"why", std::string(status.message())}});
    return false;
  }
  pool_->BeginLife();
  DropIdleArena();
  {
    absl::MutexLock lock(&mutex_);
    failure_ = absl::OkStatus();
  }
  log::Info("device_revived", {{"device", name()}});
  ReportHealth();
  return true;
}

double ManagedDevice::Utilization(absl::Time now) {
  const double seconds = dispatcher_.device_seconds();
  absl::MutexLock lock(&mutex_);
  const double passed = absl::ToDoubleSeconds(now - utilization_since_);
  // However often people look, the share is always that of a second or more.
  if (passed < 1) return utilization_;
  utilization_ = std::clamp((seconds - seconds_then_) / passed, 0.0, 1.0);
  utilization_since_ = now;
  seconds_then_ = seconds;
  return utilization_;
}

}  // namespace kiln::runtime
