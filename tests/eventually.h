// Waiting for what another thread or process is about to do.
#ifndef KILN_TESTS_EVENTUALLY_H_
#define KILN_TESTS_EVENTUALLY_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::testing {

// True once `condition` holds, which is not asked again then; false if it does not within half a
// minute.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_EVENTUALLY_H_
