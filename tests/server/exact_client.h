// A client that knows what every answer must be, whatever becomes of its connection and the daemon.
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

// What an operation must be answered with: bytes, success or an error.
struct Expected {
  std::optional<float> read;
  int code = 0;
};
using Exact = std::pair<v1::ConnectRequest, Expected>;

// The session as it must be: two programs (x + y; x becomes x + y) on single numbers.
class Model {
 public:
  // Defines the programs. Before all others.
  static std::vector<Exact> First();
  // The next operation, and what it must come to.
  Exact Next(Random& random);
  // Reads everything there is.
  std::vector<Exact> Last() const;
  // Leaves everything there is under a name, but for the programs.
  Exact Leave(const std::string& name) const;
  // Defines the programs anew, for whoever takes the session over.
  std::vector<Exact> DefineAgain();

 private:
  uint64_t Any(Random& random) const;
  Exact NextWrite(Random& random);
  Exact NextAdd(Random& random);
  Exact NextAccumulate(Random& random);
  Exact NextRead(Random& random);
  Exact NextRelease(Random& random);
  // Numbers that are taken and handles that are not there.
  Exact NextMistake(Random& random);
  // Notes what was added up to; returns it.
  float Sum(uint64_t handle, float sum);

  uint64_t next_ = 1;
  uint64_t programs_ = 1;  // the first of the two
  std::map<uint64_t, float> values_;
  // To be released next, since it is so large that what is added to it changes nothing.
  std::optional<uint64_t> too_large_;
};

// Keeps what has not been answered, and sends it again on the next stream. Not thread-safe.
class Sender {
 public:
  // `client` outlives this.
  Sender(std::string address, const Client& client)
      : address_(std::move(address)), client_(client) {}

  // Perhaps not before others: some travel together.
  void Send(Exact operation);
  // Waits for the oldest answers until no more than so many are missing.
  void AnswerAllBut(size_t count);
  void Cut();
  size_t in_flight() const { return pending_.size(); }
  // What was not as expected; empty if all was.
  const std::string& wrong() const { return wrong_; }
  // Whether wrong() says that the session is lost.
  bool has_lost_session() const { return has_lost_session_; }

 private:
  void SendHeld();
  uint64_t Acknowledged() const;
  bool Attach();
  void Check(uint64_t sequence, const Expected& expected, const v1::Result& result);
  // The stream ended, or has told nothing of the oldest for too long.
  void GoOn(uint64_t oldest);

  const std::string address_;
  const Client& client_;
  std::unique_ptr<Stream> stream_;
  uint64_t next_ = 1;
  std::map<uint64_t, Exact> pending_;
  std::vector<v1::ConnectRequest> held_;  // the last of pending_, not sent yet
  uint64_t missed_ = 0;                   // the oldest when a stream last ended by its deadline
  std::string wrong_;
  bool has_lost_session_ = false;
};

// The least number of steps that fails, of those up to `failing`, which does. What depends on
// threads may need several attempts.
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
