#include "server/log/rate_limit.h"

#include <utility>

namespace kiln::log {

std::optional<int64_t> RateLimit::Admit(absl::Time now) {
  if (now - begun_ >= window_) {
    begun_ = now;
    admitted_ = 0;
  }
  if (admitted_ >= admitted_max_) {
    ++held_back_;
    return std::nullopt;
  }
  ++admitted_;
  return std::exchange(held_back_, 0);
}

}  // namespace kiln::log
