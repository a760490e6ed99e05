// Waits for an event in another thread or process.
#ifndef KILN_TESTS_EVENTUALLY_H_
#define KILN_TESTS_EVENTUALLY_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::testing {

// Returns true once `condition` holds, and does not call it again. Returns false after
// `give_up_after`; a test that passes never waits that long.
inline bool Eventually(const std::function<bool()>& condition,
                       absl::Duration give_up_after = absl::Minutes(2)) {
  const absl::Time give_up = absl::Now() + give_up_after;
  while (!condition()) {
    if (absl::Now() > give_up) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_EVENTUALLY_H_
