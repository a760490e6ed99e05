#include "server/log/rate_limit.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::log {

std::optional<int64_t> RateLimit::Admit(absl::Time now) {
  if (now - begun_ >= window_) {
    begun_ = now;
    admitted_ = 0;
  }
  if (admitted_ >= admitted_max_) {
    ++held_back_;
    KILN_VALIDATE(*this, 1);
    return std::nullopt;
  }
  ++admitted_;
  KILN_VALIDATE(*this, 1);
  return std::exchange(held_back_, 0);
}

void RateLimit::Validate() const {
  KILN_CHECK_GE(admitted_, 0);
  KILN_CHECK_LE(admitted_, std::max(admitted_max_, 0));
  KILN_CHECK_GE(held_back_, 0);
}

}  // namespace kiln::log
