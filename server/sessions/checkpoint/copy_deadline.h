// Limits how long the daemon waits for copies of devices that may hang.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_COPY_DEADLINE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_COPY_DEADLINE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace kiln::sessions {

// Thread-safe.
class CopyDeadline {
 public:
  // Waits up to `of_one` for each copy. After one timeout nothing is waited for any more, so many
  // copies on a hung device cost only one timeout.
  explicit CopyDeadline(absl::Duration of_one);

  // Starts a copy and waits until `done` is called. DEADLINE_EXCEEDED: not in time. The copy may
  // then still be running, so `start`'s copy of `done` must keep alive what it uses.
  using Done = std::function<void(const absl::Status&)>;
  absl::Status Await(const std::function<void(Done done)>& start);

  // Times out immediately, also for threads that are waiting.
  void Cancel();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with copies that end late
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_COPY_DEADLINE_H_
