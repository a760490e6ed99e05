#include "server/sessions/checkpoint/copy_deadline.h"

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::sessions {

struct CopyDeadline::State {
  explicit State(absl::Duration of_one) : of_one(of_one) {}

  const absl::Duration of_one;
  absl::Mutex mutex;
  bool ran_out ABSL_GUARDED_BY(mutex) = false;
};

CopyDeadline::CopyDeadline(absl::Duration of_one) : state_(std::make_shared<State>(of_one)) {}

absl::Status CopyDeadline::Await(const std::function<void(Done done)>& start) {
  struct Copy {
    std::optional<absl::Status> ended;
  };
  auto copy = std::make_shared<Copy>();
  start([state = state_, copy](const absl::Status& status) {
    absl::MutexLock lock(&state->mutex);
    copy->ended = status;
  });
  absl::MutexLock lock(&state_->mutex);
  const auto is_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(state_->mutex) {
    return copy->ended.has_value() || state_->ran_out;
  };
  state_->mutex.AwaitWithTimeout(absl::Condition(&is_over), state_->of_one);
  if (copy->ended) return *copy->ended;
  state_->ran_out = true;
  return absl::DeadlineExceededError("its device did not copy the bytes of a tensor in time");
}

void CopyDeadline::Cancel() {
  absl::MutexLock lock(&state_->mutex);
  state_->ran_out = true;
}

}  // namespace kiln::sessions
