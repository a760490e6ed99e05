// Random operations over connections that are cut, with daemons that are restarted and sessions
// that another process takes over: no operation is lost, repeated or reordered. A model in this
// process computes what a client must see. An operation that takes effect twice or too early
// changes all later values.
//
//   KILN_OPERATIONS=1000000 KILN_SEED=7 daemon_test      takes a minute or two
//
// Here the daemon is in this process; kilnd_test kills daemon processes.
//
// A failure prints its seed and the smallest number of steps with which it occurs.
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/eventually.h"
#include "tests/server/exact_client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

struct Odds {
  uint64_t cut = 200;       // one in this many steps
  uint64_t restart = 1000;  // in the same unit, as is takeover
  uint64_t takeover = 1000;
};

struct Outcome {
  std::string wrong;
  int cuts = 0;
  int restarts = 0;
  int takeovers = 0;
};

// The client takes over its session, which it had detached under a name.
std::string BecomeHolder(const std::string& address, Client* client) {
  const auto stub =
      v1::SessionService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  const Taken taken = TakeOver(*stub, "exact");
  if (!taken.status.ok())
    return absl::StrCat("it cannot be taken over: ", taken.status.error_message());
  client->session = taken.session.session();
  return {};
}

Outcome TrySteps(uint64_t seed, int64_t steps, const Odds& odds) {
  Outcome outcome;
  // The operations are the same, no matter what happens to the connection and the daemon.
  Random operations(seed), accidents(seed + 1);
  TestDaemonOptions options;
  options.memory_bytes = 8 << 20;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  Sender sender(daemon.address(), client);
  for (Exact& define : Model::First()) sender.Send(std::move(define));
  sender.AnswerAllBut(0);
  Model model;
  for (int64_t step = 0; step < steps && sender.wrong().empty(); ++step) {
    sender.Send(model.Next(operations));
    if (sender.in_flight() > accidents() % 256) sender.AnswerAllBut(accidents() % 64);
    if (accidents() % odds.cut == 0) {
      sender.Cut();
      ++outcome.cuts;
    }
    if (accidents() % odds.takeover == 0) {
      sender.Send(model.Leave("exact"));
      sender.AnswerAllBut(0);
      sender.Cut();
      outcome.wrong = BecomeHolder(daemon.address(), &client);
      if (!outcome.wrong.empty()) return outcome;
      for (Exact& define : model.DefineAgain()) sender.Send(std::move(define));
      ++outcome.takeovers;
    }
    if (accidents() % odds.restart != 0) continue;
    // Sometimes with runs on the device that do not complete before the daemon stops.
    const bool hangs = accidents() % 2 == 0;
    if (hangs) daemon.device().Hold();
    for (uint64_t more = accidents() % 100; more > 0; --more) sender.Send(model.Next(operations));
    if (accidents() % 2 == 0) sender.Cut();
    daemon.Restart(
        Daemon::Sessions::kKeep,
        [&] {
          if (hangs) daemon.device().LetGo();
        },
        hangs ? absl::ZeroDuration() : absl::Hours(1));
    sender.Cut();
    ++outcome.restarts;
  }
  for (Exact& read : model.Last()) sender.Send(std::move(read));
  sender.AnswerAllBut(0);
  outcome.wrong = sender.wrong();
  return outcome;
}

TEST(ExactlyOnce, WhateverHappens) {
  const int64_t steps = NumberFromEnvironment("KILN_OPERATIONS", 4000);
  const auto seed = static_cast<uint64_t>(NumberFromEnvironment("KILN_SEED", 1));
  Odds odds;
  // A restart takes as long as thousands of operations.
  if (steps > 100'000) odds = {2000, 10'000, 10'000};
  const Outcome outcome = TrySteps(seed, steps, odds);
  RecordProperty("cuts", outcome.cuts);
  RecordProperty("restarts", outcome.restarts);
  std::printf("%ld operations, %d cuts, %d restarts, %d takeovers\n", static_cast<long>(steps),
              outcome.cuts, outcome.restarts, outcome.takeovers);
  if (outcome.wrong.empty()) {
    EXPECT_GT(outcome.cuts + outcome.restarts, 0);
    return;
  }
  const auto fails = [&](int64_t fewer) { return !TrySteps(seed, fewer, odds).wrong.empty(); };
  FAIL() << outcome.wrong << "\nKILN_SEED=" << seed
         << " KILN_OPERATIONS=" << LeastThatFails(steps, fails) << " shows it";
}

}  // namespace
}  // namespace kiln::testing
