// Waiting for what another thread or process is about to do.
#ifndef KILN_TESTS_EVENTUALLY_H_
#define KILN_TESTS_EVENTUALLY_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::testing {

// True once `condition` holds, which is not asked again then. False after `give_up_after`, which a
// test reaches only if what it waits for never happens.
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
