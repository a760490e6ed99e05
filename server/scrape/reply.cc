#include "server/scrape/reply.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::scrape {

Reply::Reply(std::function<void()> on_sent) : state_(std::make_shared<State>(std::move(on_sent))) {}

void Reply::Send(Response response) const {
  {
    absl::MutexLock lock(&state_->mutex);
    KILN_CHECK(!state_->is_sent) << "a request is answered twice";
    state_->is_sent = true;
    if (state_->is_wanted) state_->response = std::move(response);
  }
  state_->on_sent();
}

bool Reply::is_wanted() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->is_wanted;
}

std::optional<Response> Reply::Take() const {
  absl::MutexLock lock(&state_->mutex);
  return std::exchange(state_->response, std::nullopt);
}

bool Reply::has_come() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->response.has_value();
}

void Reply::Abandon() const {
  absl::MutexLock lock(&state_->mutex);
  state_->is_wanted = false;
  state_->response.reset();
}

}  // namespace kiln::scrape
