// The answers to operations, and the stream that takes them to the client.
#ifndef KILN_SERVER_SESSIONS_ANSWER_H_
#define KILN_SERVER_SESSIONS_ANSWER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/memory/host_memory.h"
#include "server/runtime/run/run.h"

namespace kiln::sessions {

struct Answer {
  uint64_t sequence = 0;
  absl::Status error{};
  // The value of a Read. A value with a holder does not change, so its bytes are not copied; they
  // are read when the answer is sent or resent.
  runtime::ValuePointer value{};
  std::string digest{};
  double device_seconds = 0;
  memory::Charge charge{};
};
// The bytes of host memory that an answer holds.
int64_t SizeOf(const Answer& answer);

// Receives a session's answers: one connected stream. Thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;
  // Both only put the message into the stream's queue, so they may be called with locks held; Flush
  // sends.
  virtual void PushAttached(uint64_t last_sequence) = 0;
  virtual void Push(std::shared_ptr<const Answer> answer) = 0;
  // The methods below are called without locks.
  virtual void Flush() = 0;
  // The session accepts operations again, after WantsMore had returned false.
  virtual void ReadMore() = 0;
  // Sends what is queued, then ends the stream.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ANSWER_H_
