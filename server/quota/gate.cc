#include "server/quota/gate.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::quota {

Gate::~Gate() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(entered_.empty()) << entered_.size() << " passes outlive their gate";
}

void Gate::Validate() const {
  // Passes only add to what is used, without this lock, so a gate that is closed for one stays so
  // until a pass leaves.
  for (const auto& [number, go_on] : entered_) {
    KILN_CHECK_GT(number, 0);
    KILN_CHECK_LE(number, last_number_);
    KILN_CHECK(go_on == nullptr || !IsOpenFor(number)) << "pass " << number << " was not told";
  }
}

std::unique_ptr<Gate::Pass> Gate::Enter() {
  absl::MutexLock lock(&mutex_);
  const int64_t number = ++last_number_;
  const bool is_new = entered_.emplace(number, nullptr).second;
  KILN_CHECK(is_new) << "pass " << number;
  KILN_VALIDATE(*this, entered_.size());
  return std::unique_ptr<Pass>(new Pass(*this, number));
}

bool Gate::MayGoOn(int64_t number, GoOn go_on) {
  absl::MutexLock lock(&mutex_);
  const auto pass = entered_.find(number);
  KILN_CHECK(pass != entered_.end()) << "pass " << number;
  if (IsOpenFor(number)) return true;
  pass->second = std::move(go_on);
  KILN_VALIDATE(*this, entered_.size());
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
    const size_t erased = entered_.erase(number);
    KILN_CHECK_EQ(erased, 1) << "pass " << number;
    // This pass has brought as much, so the sum of all passes is not less.
    KILN_CHECK_GE(meter_.used(), amount);
    meter_.Give(amount);
    ready = TakeReady();
    KILN_VALIDATE(*this, entered_.size());
  }
  for (const GoOn& go_on : ready) go_on();
}

void Gate::SetLimit(int64_t limit) {
  std::vector<GoOn> ready;
  {
    absl::MutexLock lock(&mutex_);
    meter_.SetLimit(limit);
    ready = TakeReady();
    KILN_VALIDATE(*this, entered_.size());
  }
  for (const GoOn& go_on : ready) go_on();
}

}  // namespace kiln::quota
