#include "server/tuner/tuning_control.h"

namespace kiln::tuner {

void TuningControl::Cancel(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  status_ = why;
  if (runner_ != nullptr) runner_->Stop(why);
}

absl::Status TuningControl::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void TuningControl::Pause(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (is_paused_) return;
  is_paused_ = true;
  paused_since_ = now;
  if (runner_ != nullptr) runner_->Pause();
}

void TuningControl::Resume(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (!is_paused_) return;
  is_paused_ = false;
  paused_ += now - paused_since_;
  if (runner_ != nullptr) runner_->Resume();
}

bool TuningControl::is_paused() const {
  absl::MutexLock lock(&mutex_);
  return is_paused_;
}

void TuningControl::AwaitResume() const {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &TuningControl::GoesOn));
}

absl::Duration TuningControl::paused(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return paused_ + (is_paused_ ? now - paused_since_ : absl::ZeroDuration());
}

void TuningControl::SetRunner(TrialRunner* runner) {
  absl::MutexLock lock(&mutex_);
  runner_ = runner;
  if (runner_ == nullptr) return;
  if (on_yield_) runner_->SetOnYield(on_yield_);
  if (!status_.ok()) runner_->Stop(status_);
  if (is_paused_) runner_->Pause();
}

}  // namespace kiln::tuner
