#include "server/quota/gate.h"

#include <utility>

namespace kiln::quota {

std::unique_ptr<Gate::Pass> Gate::Enter() {
  absl::MutexLock lock(&mutex_);
  const int64_t number = ++last_number_;
  entered_.emplace(number, nullptr);
  return std::unique_ptr<Pass>(new Pass(*this, number));
}

bool Gate::MayGoOn(int64_t number, GoOn go_on) {
  absl::MutexLock lock(&mutex_);
  if (IsOpenFor(number)) return true;
  entered_[number] = std::move(go_on);
  return false;
}

std::vector<Gate::GoOn> Gate::TakeReady() {
  std::vector<GoOn> ready;
  for (auto& [number, go_on] : entered_) {
    if (go_on == nullptr || !IsOpenFor(number)) continue;
    ready.push_back(std::exchange(go_on, nullptr));
  }
  return ready;
}

void Gate::Leave(int64_t number, int64_t amount) {
  std::vector<GoOn> ready;
  {
    absl::MutexLock lock(&mutex_);
    entered_.erase(number);
    meter_.Give(amount);
    ready = TakeReady();
  }
  for (const GoOn& go_on : ready) go_on();
}

void Gate::SetLimit(int64_t limit) {
  std::vector<GoOn> ready;
  {
    absl::MutexLock lock(&mutex_);
    meter_.SetLimit(limit);
    ready = TakeReady();
  }
  for (const GoOn& go_on : ready) go_on();
}

}  // namespace kiln::quota
