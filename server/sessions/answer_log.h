// Sequence numbers: what has been received, and the answers that the client has not acknowledged
// yet.
#ifndef KILN_SERVER_SESSIONS_ANSWER_LOG_H_
#define KILN_SERVER_SESSIONS_ANSWER_LOG_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// Not thread-safe: the session guards it.
class AnswerLog {
 public:
  struct Limits {
    int64_t answers = 0;
    int64_t bytes = 0;
  };

  // What to do with the operation of this number: true, run it; false, it has been received before
  // (a client sends again what it does not know to have arrived). INVALID_ARGUMENT: numbers are
  // missing.
  absl::StatusOr<bool> Receive(uint64_t sequence);
  // The client has every answer up to `sequence`.
  void Acknowledge(uint64_t sequence);
  void Add(std::shared_ptr<const Answer> answer);
  // RESOURCE_EXHAUSTED if the client acknowledges too few answers; the limit is lower while host
  // memory is short.
  absl::Status CheckAcknowledged(Limits limits, bool host_is_short) const;

  // For a log that was kept.
  void RestoreReceived(uint64_t sequence) { last_received_ = sequence; }

  // In the order of their sequence numbers.
  std::vector<std::shared_ptr<const Answer>> Unacknowledged() const;
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t last_received() const { return last_received_; }
  // Host memory that they are charged for.
  int64_t bytes() const { return bytes_; }

 private:
  uint64_t last_received_ = 0;
  uint64_t acknowledged_ = 0;
  int64_t bytes_ = 0;
  absl::btree_map<uint64_t, std::shared_ptr<const Answer>> answers_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ANSWER_LOG_H_
