#include "server/relay/token_bucket.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::relay {

absl::Duration TokenBucket::Wait(absl::Time now) {
  Refill(now);
  if (tokens_ >= 1) return absl::ZeroDuration();
  return absl::Seconds((1 - tokens_) / rate_.per_second);
}

bool TokenBucket::IsFull(absl::Time now) {
  Refill(now);
  return tokens_ >= rate_.burst;
}

void TokenBucket::Refill(absl::Time now) {
  if (now > refilled_ && refilled_ != absl::InfinitePast()) {
    const double more = absl::ToDoubleSeconds(now - refilled_) * rate_.per_second;
    tokens_ = std::min(rate_.burst, tokens_ + more);
  }
  refilled_ = std::max(refilled_, now);
  KILN_CHECK_LE(tokens_, rate_.burst);
}

}  // namespace kiln::relay
