// A rate limit with bursts.
#ifndef KILN_SERVER_RELAY_TOKEN_BUCKET_H_
#define KILN_SERVER_RELAY_TOKEN_BUCKET_H_

#include "absl/time/time.h"
#include "proto/check/check.h"

namespace kiln::relay {

struct Rate {
  double per_second = 0;
  double burst = 0;  // at once, after a quiet time; at least 1
};

// A token bucket, initially full, refilled at its rate. Not thread-safe. If the clock goes
// backwards, it counts as standing still.
class TokenBucket {
 public:
  explicit TokenBucket(Rate rate) : rate_(rate), tokens_(rate.burst) {}

  // Returns the time until there is a token; zero if there is one.
  absl::Duration Wait(absl::Time now);
  // Requires: Wait(now) is zero.
  void Take() {
    // A part of a token may be missing if its wait rounds to zero.
    KILN_CHECK_GT(tokens_, 0);
    tokens_ -= 1;
  }
  bool IsFull(absl::Time now);

 private:
  void Refill(absl::Time now);

  const Rate rate_;
  double tokens_;
  absl::Time refilled_ = absl::InfinitePast();
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_TOKEN_BUCKET_H_
