// Tracks received sequence numbers and keeps the answers that the client has not acknowledged yet.
#ifndef KILN_SERVER_SESSIONS_ANSWER_LOG_H_
#define KILN_SERVER_SESSIONS_ANSWER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/sessions/answer.h"

namespace kiln::sessions {

// Not thread-safe: guarded by the session's lock.
class AnswerLog {
 public:
  struct Limits {
    int64_t answers = 0;
    int64_t bytes = 0;
  };

  // Returns true if the operation with this number is new and must be executed, false if it has
  // been received before (a client resends operations that may not have arrived). INVALID_ARGUMENT
  // if numbers before it are missing.
  absl::StatusOr<bool> Receive(uint64_t sequence);
  // Drops the answers up to `sequence`, all of which the client has.
  void Acknowledge(uint64_t sequence);
  // Requires: the operation has no answer yet, so it has not been added before.
  void Add(std::shared_ptr<const Answer> answer);
  // RESOURCE_EXHAUSTED if the client acknowledges too few answers; the limit is lower while host
  // memory is short.
  absl::Status CheckAcknowledged(Limits limits, bool host_is_short) const;

  // For a restored session: all operations up to `sequence` have been received. Requires: it is not
  // below last_received().
  void RestoreReceived(uint64_t sequence);

  // Returns the answers in the order of their sequence numbers.
  std::vector<std::shared_ptr<const Answer>> Unacknowledged() const;
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t last_received() const { return last_received_; }
  // The host memory charged for the unacknowledged answers.
  int64_t bytes() const { return bytes_; }
  size_t size() const { return answers_.size(); }
  // Whether the answer to this operation is kept.
  bool Has(uint64_t sequence) const { return answers_.contains(sequence); }
  // The highest sequence number of a kept answer; 0 if there is none.
  uint64_t highest() const { return answers_.empty() ? 0 : answers_.rbegin()->first; }
  // Each answer is kept under its own number, and `bytes` is the sum of their charges.
  void Validate() const;

 private:
  uint64_t last_received_ = 0;
  uint64_t acknowledged_ = 0;
  int64_t bytes_ = 0;
  absl::btree_map<uint64_t, std::shared_ptr<const Answer>> answers_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ANSWER_LOG_H_
