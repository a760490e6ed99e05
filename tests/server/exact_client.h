// A client that knows what every answer must be, even if its connection or the daemon fails.
#ifndef KILN_TESTS_SERVER_EXACT_CLIENT_H_
#define KILN_TESTS_SERVER_EXACT_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/client.h"

namespace kiln::testing {

using Random = std::mt19937_64;

// The expected answer to an operation: bytes, success or an error.
struct Expected {
  std::optional<float> read;
  int code = 0;
};
using Exact = std::pair<v1::ConnectRequest, Expected>;

// The expected state of a session: two programs (x + y; x becomes x + y) on scalars.
class Model {
 public:
  // Returns the definitions of the programs, which must be sent first.
  static std::vector<Exact> First();
  // Returns the next operation and its expected answer.
  Exact Next(Random& random);
  // Returns reads of all values.
  std::vector<Exact> Last() const;
  // Returns an operation that detaches the session and all values, without the programs, under a
  // name.
  Exact Leave(const std::string& name) const;
  // Returns new definitions of the programs, for the client that takes the session over.
  std::vector<Exact> DefineAgain();

 private:
  uint64_t Any(Random& random) const;
  Exact NextWrite(Random& random);
  Exact NextAdd(Random& random);
  Exact NextAccumulate(Random& random);
  Exact NextRead(Random& random);
  Exact NextRelease(Random& random);
  // Uses numbers that are taken and handles that do not exist.
  Exact NextMistake(Random& random);
  // Records the sum's value and returns it.
  float Sum(uint64_t handle, float sum);

  uint64_t next_ = 1;
  uint64_t programs_ = 1;  // the first of the two
  std::map<uint64_t, float> values_;
  // Released next, because it is so large that adding to it changes nothing.
  std::optional<uint64_t> too_large_;
};

// Keeps operations that have not been answered, and sends them again on the next stream. Not
// thread-safe.
class Sender {
 public:
  // `client` must outlive this object.
  Sender(std::string address, const Client& client)
      : address_(std::move(address)), client_(client) {}

  // May delay the operation, since some share a message.
  void Send(Exact operation);
  // Waits for the oldest answers until at most `count` are missing.
  void AnswerAllBut(size_t count);
  void Cut();
  size_t in_flight() const { return pending_.size(); }
  // Describes the first unexpected result; empty if there was none.
  const std::string& wrong() const { return wrong_; }
  // True if wrong() says that the session is lost.
  bool has_lost_session() const { return has_lost_session_; }

 private:
  void SendHeld();
  uint64_t Acknowledged() const;
  bool Attach();
  void Check(uint64_t sequence, const Expected& expected, const v1::Result& result);
  // Reconnects: the stream ended, or has not answered the oldest operation for too long.
  void GoOn(uint64_t oldest);

  const std::string address_;
  const Client& client_;
  std::unique_ptr<Stream> stream_;
  uint64_t next_ = 1;
  std::map<uint64_t, Exact> pending_;
  std::vector<v1::ConnectRequest> held_;  // the last ones of pending_, not sent yet
  uint64_t missed_ = 0;                   // the oldest one when a stream last timed out
  std::string wrong_;
  bool has_lost_session_ = false;
};

// Returns the smallest number of steps that fails, at most `failing`, which is known to fail.
// Failures that depend on threads may need several attempts.
template <typename Fails>
int64_t LeastThatFails(int64_t failing, const Fails& fails) {
  int64_t passing = 0;
  while (failing - passing > 1) {
    const int64_t middle = passing + (failing - passing) / 2;
    bool failed = false;
    for (int attempt = 0; attempt < 3 && !failed; ++attempt) failed = fails(middle);
    (failed ? failing : passing) = middle;
  }
  return failing;
}

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_EXACT_CLIENT_H_
