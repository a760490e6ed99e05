// Random operations through connections that are cut and daemons that are restarted: none is lost,
// none is done twice, none overtakes another. What a client must see is what a model in this
// process computes; a number that comes once too often or too early changes all that follow.
//
//   KILN_OPERATIONS=1000000 KILN_SEED=7 exactly_once_test      takes a minute or so
//
// A failure prints its seed, and the least number of steps after which it shows.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using Random = std::mt19937_64;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  int64_t number = otherwise;
  const char* text = std::getenv(name);
  if (text != nullptr && !absl::SimpleAtoi(text, &number)) std::abort();
  return number;
}

// What an operation must be answered with: bytes, success or an error.
struct Expected {
  std::optional<float> read;
  int code = 0;
};

// The session as it must be: programs 1 (x + y) and 2 (x becomes x + y) on single numbers.
class Model {
 public:
  // The next operation, and what it must come to.
  std::pair<v1::ConnectRequest, Expected> Next(Random& random) {
    const uint64_t kind = random() % 100;
    if (values_.size() < 4 || kind < 10) return NextWrite(random);
    if (kind < 30) return NextAdd(random);
    if (kind < 65) return NextAccumulate(random);
    if (kind < 80) return NextRead(random);
    if (kind < 85) return {Barrier(), {}};
    if (kind < 90) return NextMistake(random);
    if (values_.size() < 32) return NextAdd(random);
    return NextRelease(random);
  }
  // Reads everything there is.
  std::vector<std::pair<v1::ConnectRequest, Expected>> Last() const {
    std::vector<std::pair<v1::ConnectRequest, Expected>> reads;
    for (const auto& [handle, value] : values_) reads.push_back({Read(handle), {value, 0}});
    return reads;
  }

 private:
  uint64_t Any(Random& random) {
    return std::next(values_.begin(), static_cast<int64_t>(random() % values_.size()))->first;
  }
  std::pair<v1::ConnectRequest, Expected> NextWrite(Random& random) {
    const auto value = static_cast<float>(random() % 1000) / 7;
    values_[next_] = value;
    return {Write(next_++, {value}), {}};
  }
  std::pair<v1::ConnectRequest, Expected> NextAdd(Random& random) {
    const uint64_t x = Any(random), y = Any(random);
    values_[next_] = values_[x] + values_[y];
    return {RunProgram(1, {x, y}, {next_++}), {}};
  }
  std::pair<v1::ConnectRequest, Expected> NextAccumulate(Random& random) {
    const uint64_t x = Any(random), y = Any(random);
    values_[x] += values_[y];
    return {RunProgram(2, {x, y}, {}), {}};
  }
  std::pair<v1::ConnectRequest, Expected> NextRead(Random& random) {
    const uint64_t handle = Any(random);
    return {Read(handle), {values_[handle], 0}};
  }
  std::pair<v1::ConnectRequest, Expected> NextRelease(Random& random) {
    const uint64_t handle = Any(random);
    values_.erase(handle);
    return {Release({handle}), {}};
  }
  // Numbers that are taken and handles that are not there.
  std::pair<v1::ConnectRequest, Expected> NextMistake(Random& random) {
    if (random() % 2 == 0) return {Write(Any(random), {1}), {std::nullopt, grpc::INVALID_ARGUMENT}};
    return {Read(next_ + 1'000'000'000), {std::nullopt, grpc::NOT_FOUND}};
  }

  uint64_t next_ = 1;
  std::map<uint64_t, float> values_;
};

v1::Graph AccumulateOnly() {
  v1::Graph graph = AccumulateGraph(1);
  graph.clear_outputs();
  return graph;
}

// Keeps what has not been answered, and sends it again on the next stream.
class Sender {
 public:
  Sender(const std::string& address, const Client& client) : address_(address), client_(client) {}

  void Send(v1::ConnectRequest request, const Expected& expected) {
    const uint64_t sequence = next_++;
    request.set_acknowledged(Acknowledged());
    pending_[sequence] = {request, expected};
    if (stream_) stream_->Send(std::move(request), sequence);
  }
  // Waits for the oldest answers until no more than so many are missing.
  void AnswerAllBut(size_t count) {
    while (pending_.size() > count && wrong_.empty()) {
      if (!stream_ && !Attach()) return;
      const auto [sequence, pending] = *pending_.begin();
      const v1::Result result = stream_->Answer(sequence);
      if (result.error().code() == -1) {
        stream_.reset();
        continue;
      }
      Check(sequence, pending.second, result);
      pending_.erase(pending_.begin());
    }
  }
  void Cut() {
    if (stream_) stream_->Drop();
    stream_.reset();
  }
  size_t in_flight() const { return pending_.size(); }
  // What was not as expected; empty if all was.
  const std::string& wrong() const { return wrong_; }

 private:
  uint64_t Acknowledged() const {
    return pending_.empty() ? next_ - 1 : pending_.begin()->first - 1;
  }

  bool Attach() {
    grpc::Status why;
    stream_ = Reattach(address_, client_, Acknowledged(), &why);
    if (!stream_) {
      wrong_ = absl::StrCat("the session is lost: ", why.error_message());
      return false;
    }
    if (stream_->last_sequence() < Acknowledged()) {
      wrong_ = absl::StrCat("operation ", Acknowledged(), " has been answered, but the last that ",
                            "was received is ", stream_->last_sequence());
    }
    for (auto next = pending_.upper_bound(stream_->last_sequence()); next != pending_.end(); ++next)
      stream_->Send(next->second.first, next->first);
    return wrong_.empty();
  }

  void Check(uint64_t sequence, const Expected& expected, const v1::Result& result) {
    if (result.error().code() != expected.code) {
      wrong_ = absl::StrCat("operation ", sequence, ": ", result.error().message());
      return;
    }
    if (!expected.read) return;
    const std::vector<float> read = Floats(result.data());
    // Bit for bit.
    if (read.size() == 1 && std::memcmp(&read[0], &*expected.read, sizeof(float)) == 0) return;
    wrong_ = absl::StrCat("operation ", sequence, " read ", read.empty() ? -1 : read[0], ", not ",
                          *expected.read);
  }

  const std::string address_;
  const Client& client_;
  std::unique_ptr<Stream> stream_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::pair<v1::ConnectRequest, Expected>> pending_;
  std::string wrong_;
};

struct Odds {
  uint64_t cut = 200;       // one in so many steps
  uint64_t restart = 1000;  // likewise
};

struct Outcome {
  std::string wrong;
  int cuts = 0;
  int restarts = 0;
};

Outcome TrySteps(uint64_t seed, int64_t steps, const Odds& odds) {
  Outcome outcome;
  // The operations are the same whatever becomes of the connection and the daemon.
  Random operations(seed), accidents(seed + 1);
  TestDaemonOptions options;
  options.memory_bytes = 8 << 20;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  Sender sender(daemon.address(), client);
  sender.Send(Define(1, AddGraph(1)), {});
  sender.Send(Define(2, AccumulateOnly()), {});
  sender.AnswerAllBut(0);
  Model model;
  for (int64_t step = 0; step < steps && sender.wrong().empty(); ++step) {
    auto [request, expected] = model.Next(operations);
    sender.Send(std::move(request), expected);
    if (sender.in_flight() > accidents() % 256) sender.AnswerAllBut(accidents() % 64);
    if (accidents() % odds.cut == 0) {
      sender.Cut();
      ++outcome.cuts;
    }
    if (accidents() % odds.restart != 0) continue;
    // Sometimes with runs on the device that do not end before the daemon does.
    const bool hangs = accidents() % 2 == 0;
    if (hangs) daemon.device().Hold();
    for (uint64_t more = accidents() % 100; more > 0; --more) {
      auto [another, comes_to] = model.Next(operations);
      sender.Send(std::move(another), comes_to);
    }
    if (accidents() % 2 == 0) sender.Cut();
    daemon.Restart(
        Daemon::Sessions::kKeep,
        [&] {
          if (hangs) daemon.device().LetGo();
        },
        absl::Milliseconds(hangs ? 10 : 3000));
    sender.Cut();
    ++outcome.restarts;
  }
  for (auto& [request, expected] : model.Last()) sender.Send(std::move(request), expected);
  sender.AnswerAllBut(0);
  outcome.wrong = sender.wrong();
  return outcome;
}

// The least number of steps that fails; what depends on threads may need several attempts.
int64_t Shrink(uint64_t seed, int64_t failing, const Odds& odds) {
  int64_t passing = 0;
  while (failing - passing > 1) {
    const int64_t middle = passing + (failing - passing) / 2;
    bool fails = false;
    for (int attempt = 0; attempt < 3 && !fails; ++attempt)
      fails = !TrySteps(seed, middle, odds).wrong.empty();
    (fails ? failing : passing) = middle;
  }
  return failing;
}

TEST(ExactlyOnce, WhateverHappens) {
  const int64_t steps = FromEnvironment("KILN_OPERATIONS", 4000);
  const auto seed = static_cast<uint64_t>(FromEnvironment("KILN_SEED", 1));
  Odds odds;
  // A restart takes as long as thousands of operations.
  if (steps > 100'000) odds = {2000, 10'000};
  const Outcome outcome = TrySteps(seed, steps, odds);
  RecordProperty("cuts", outcome.cuts);
  RecordProperty("restarts", outcome.restarts);
  std::printf("%ld operations, %d cuts, %d restarts\n", static_cast<long>(steps), outcome.cuts,
              outcome.restarts);
  if (outcome.wrong.empty()) {
    EXPECT_GT(outcome.cuts + outcome.restarts, 0);
    return;
  }
  FAIL() << outcome.wrong << "\nKILN_SEED=" << seed
         << " KILN_OPERATIONS=" << Shrink(seed, steps, odds) << " shows it";
}

}  // namespace
}  // namespace kiln::testing
