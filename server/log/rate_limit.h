// Limits how often an event that a stranger or a client can cause is logged.
#ifndef KILN_SERVER_LOG_RATE_LIMIT_H_
#define KILN_SERVER_LOG_RATE_LIMIT_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace kiln::log {

// Admits at most `admitted_max` events in each `window`, so that no client can fill the log. Not
// thread-safe.
class RateLimit {
 public:
  RateLimit(int admitted_max, absl::Duration window)
      : admitted_max_(admitted_max), window_(window) {}
  // Returns how many were dropped before this one; nullopt if this one is dropped, too.
  std::optional<int64_t> Admit(absl::Time now);

 private:
  void Validate() const;

  const int admitted_max_;
  const absl::Duration window_;
  absl::Time begun_ = absl::InfinitePast();
  int admitted_ = 0;
  int64_t held_back_ = 0;
};

}  // namespace kiln::log

#endif  // KILN_SERVER_LOG_RATE_LIMIT_H_
