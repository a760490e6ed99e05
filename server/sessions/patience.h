// How long the daemon waits for the copies of devices that may hang.
#ifndef KILN_SERVER_SESSIONS_PATIENCE_H_
#define KILN_SERVER_SESSIONS_PATIENCE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace kiln::sessions {

// Thread-safe.
class Patience {
 public:
  // So long for each copy. Once it has run out, nothing is waited for any more: whoever asks a
  // device that hangs for many copies waits for it once.
  explicit Patience(absl::Duration of_one);

  // Starts a copy and waits until `done` is called. DEADLINE_EXCEEDED: it was not in time. Then it
  // may still be under way, so what it uses must be kept by `start`'s copy of `done`.
  using Done = std::function<void(const absl::Status&)>;
  absl::Status Await(const std::function<void(Done done)>& start);

  // Runs out at once, also for those who wait.
  void GiveUp();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // with copies that end late, too
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_PATIENCE_H_
