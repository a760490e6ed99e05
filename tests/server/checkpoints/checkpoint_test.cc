// Sessions that survive a daemon that is killed: real kilnd processes and SIGKILL.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/environment.h"
#include "tests/eventually.h"
#include "tests/server/checkpoints/fixture.h"
#include "tests/server/exact_client.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(SnapshotTest, ASessionGoesOnAfterAKill) {
  Start();
  Summer summer(address_);
  for (int i = 0; i < 50; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  for (int i = 0; i < 50; ++i) summer.Step();
  KillAndStart();  // with many unanswered operations
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

TEST_F(SnapshotTest, OneThatDidNotAskForItIsLost) {
  Start();
  Summer asked(address_), did_not(address_, 0);
  asked.Step();
  did_not.Step();
  ASSERT_TRUE(asked.Settle() && did_not.Settle());
  EXPECT_THAT(Files(".session"), SizeIs(1));
  KillAndStart();
  EXPECT_EQ(did_not.Attach(), "SESSION_LOST");
  ASSERT_EQ(asked.Attach(), "");
  asked.ExpectRight();
}

// Tensors in parts, copies and programs on other devices are restored from the snapshot and the
// journal.
TEST_F(SnapshotTest, SeveralDevices) {
  config_ = "[devices]\ncpu_devices = 2\n";
  Start();
  Client client(address_, 0, "cpu:0", kSeldom);
  ASSERT_TRUE(Eventually([&] { return IsProtected(); }));
  v1::Placement halves;
  v1::Mesh::Axis* axis = halves.mutable_mesh()->add_axes();
  axis->set_name("data");
  axis->set_size(2);
  halves.mutable_spec()->add_dims()->add_axes(0);
  for (const char* device : {"cpu:1", "cpu:0"}) halves.add_devices(device);
  auto stream = client.Connect();
  // Parts of three and two.
  v1::ConnectRequest write = Write(1, {1, 2, 3, 4, 5});
  *write.mutable_write()->mutable_placement() = halves;
  EXPECT_FALSE(stream->Call(write).has_error());
  v1::ConnectRequest move;
  move.mutable_move()->set_source(1);
  move.mutable_move()->set_handle(2);
  move.mutable_move()->mutable_placement()->add_devices("cpu:1");
  EXPECT_FALSE(stream->Call(move).has_error());
  v1::ConnectRequest define = Define(1, AddGraph(5));
  define.mutable_define_program()->add_devices("cpu:1");
  EXPECT_FALSE(stream->Call(define).has_error());
  EXPECT_FALSE(stream->Call(RunProgram(1, {2, 2}, {3})).has_error());
  *move.mutable_move()->mutable_placement() = halves;
  move.mutable_move()->set_source(3);
  move.mutable_move()->set_handle(4);
  EXPECT_FALSE(stream->Call(move).has_error());
  uint64_t received = 5;
  // From the journal; then from the snapshot that is taken because a journal was read.
  for (const bool from_image : {false, true}) {
    if (from_image) {
      ASSERT_TRUE(Eventually([&] { return Files(".journal").size() == 1; }));
    }
    KillAndStart();
    stream = Reattach(address_, client, received);
    ASSERT_NE(stream, nullptr);
    EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(Floats(stream->Call(Read(4)).data()), ElementsAre(2, 4, 6, 8, 10));
    EXPECT_FALSE(stream->Call(RunProgram(1, {2, 3}, {from_image ? 6UL : 5UL})).has_error());
    received += 3;
  }
}

// At any moment of the kill, and with any connection failure.
//
//   KILN_OPERATIONS=1000000 KILN_SEED=7 kilnd_test --gtest_filter=ExactlyOnceTest.*
class ExactlyOnceTest : public SnapshotTest {
 protected:
  struct Odds {
    uint64_t cut = 200;  // one in this many steps
    uint64_t takeover = 1000;
    uint64_t end = 250;
  };
  struct Outcome {
    std::string wrong;
    int cuts = 0, takeovers = 0, kills = 0, stops = 0;
  };

  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = SnapshotTest::Flags();
    return flags;
  }
  void EndAndStart(int signal, Outcome* outcome) {
    End(signal);
    std::filesystem::remove(folder_ + "/log");
    Start();
    ++(signal == SIGKILL ? outcome->kills : outcome->stops);
  }
  // Another process takes the session over; its numbers continue after the previous ones.
  std::string TakeOver(Client* client) {
    v1::AttachSessionRequest request;
    request.set_name("exact");
    v1::AttachSessionResponse taken;
    grpc::Status status;
    Eventually([&] {
      const auto stub = v1::SessionService::NewStub(
          grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
      grpc::ClientContext context;
      status = stub->AttachSession(&context, request, &taken);
      return status.error_code() != grpc::UNAVAILABLE;
    });
    if (!status.ok()) return absl::StrCat("it cannot be taken over: ", status.error_message());
    client->session = taken.session();
    return {};
  }
  void CallOnce() {
    const auto stub = v1::DeviceService::NewStub(
        grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ListDevicesResponse devices;
    EXPECT_TRUE(stub->ListDevices(&context, {}, &devices).ok());
  }
  // Stops the daemon with a signal. Then perhaps kills the next ones after a random number of
  // calls, while they restore the session or later.
  void EndSome(Random& accidents, Outcome* outcome) {
    EndAndStart(accidents() % 4 == 0 ? SIGTERM : SIGKILL, outcome);
    // After five kills in a row the session is dropped.
    for (int more = 0; more < 3 && accidents() % 2 == 0; ++more) {
      for (uint64_t calls = accidents() % 50; calls > 0; --calls) CallOnce();
      EndAndStart(SIGKILL, outcome);
    }
  }
  Outcome TrySteps(uint64_t seed, int64_t steps, const Odds& odds) {
    Outcome outcome;
    Random random(seed), accidents(seed + 1);
    Start();
    Client client(address_, 0, "", 1);
    Sender sender(address_, client);
    for (Exact& define : Model::First()) sender.Send(std::move(define));
    sender.AnswerAllBut(0);
    Model model;
    for (int64_t step = 0; step < steps && sender.wrong().empty(); ++step) {
      sender.Send(model.Next(random));
      if (sender.in_flight() > accidents() % 256) sender.AnswerAllBut(accidents() % 64);
      if (accidents() % odds.cut == 0) {
        sender.Cut();
        ++outcome.cuts;
      }
      if (accidents() % odds.takeover == 0) {
        sender.Send(model.Leave("exact"));
        sender.AnswerAllBut(0);
        sender.Cut();
        if (accidents() % 2 == 0) EndAndStart(SIGKILL, &outcome);
        outcome.wrong = TakeOver(&client);
        if (!outcome.wrong.empty()) return outcome;
        for (Exact& define : model.DefineAgain()) sender.Send(std::move(define));
        ++outcome.takeovers;
      }
      if (accidents() % odds.end != 0) continue;
      for (uint64_t more = accidents() % 100; more > 0; --more) sender.Send(model.Next(random));
      if (accidents() % 2 == 0) sender.Cut();
      EndSome(accidents, &outcome);
      sender.Cut();
    }
    for (Exact& read : model.Last()) sender.Send(std::move(read));
    sender.AnswerAllBut(0);
    outcome.wrong = sender.wrong();
    return outcome;
  }
  // Starts with a daemon without state.
  bool FailsAfter(uint64_t seed, int64_t steps, const Odds& odds) {
    if (pid_ > 0) End(SIGKILL);
    for (const char* each : {"/state", "/log"}) std::filesystem::remove_all(folder_ + each);
    return !TrySteps(seed, steps, odds).wrong.empty();
  }
};

TEST_F(ExactlyOnceTest, WhateverHappens) {
  const auto seed = static_cast<uint64_t>(NumberFromEnvironment("KILN_SEED", 1));
  const int64_t steps = NumberFromEnvironment("KILN_OPERATIONS", 3000);
  Odds odds;
  // A daemon's start takes as long as thousands of operations.
  if (steps > 100'000) odds = {1000, 10'000, 2500};
  const Outcome outcome = TrySteps(seed, steps, odds);
  std::printf("%ld operations, %d cuts, %d kills, %d stops, %d takeovers\n",
              static_cast<long>(steps), outcome.cuts, outcome.kills, outcome.stops,
              outcome.takeovers);
  if (!outcome.wrong.empty()) {
    const auto fails = [&](int64_t fewer) { return FailsAfter(seed, fewer, odds); };
    FAIL() << outcome.wrong << "\nKILN_SEED=" << seed
           << " KILN_OPERATIONS=" << LeastThatFails(steps, fails) << " shows it";
  }
  EXPECT_GT(outcome.kills, 3);
}

// A run is cancelled completely or not at all, and later operations see that, even after a kill.
TEST_F(SnapshotTest, WhatWasCancelledStaysSo) {
  Start();
  Client client(address_, 0, "", kSeldom);
  auto stream = client.Connect();
  constexpr int64_t kFloats = 1 << 20;
  v1::Graph graph = AccumulateGraph(kFloats);
  graph.clear_outputs();
  stream->Send(Define(1, graph), 1);
  stream->Send(Write(1, std::vector<float>(1, 0)), 2);  // refused because of its size
  std::string zeros(4 * kFloats, '\0'), ones;
  for (int64_t i = 0; i < kFloats; ++i) ones.append("\0\0\x80\x3f", 4);
  ASSERT_TRUE(client.Upload("zeros", zeros).ok());
  ASSERT_TRUE(client.Upload("ones", ones).ok());
  stream->Send(WriteBlob(2, "zeros", kFloats), 3);
  stream->Send(WriteBlob(3, "ones", kFloats), 4);
  uint64_t next = 5;
  std::map<uint64_t, int> codes;
  for (int round = 0; round < 5; ++round) {
    const uint64_t first = next;
    // In one message, so that runs are left when they are cancelled.
    std::vector<v1::ConnectRequest> round_of_runs(200, RunProgram(1, {2, 3}, {}));
    round_of_runs.push_back(CancelFrom(first));
    round_of_runs.push_back(RunProgram(1, {2, 3}, {}));
    next += round_of_runs.size();
    stream->SendTogether(std::move(round_of_runs), first);
    for (uint64_t run = first; run < next; ++run) codes[run] = stream->Answer(run).error().code();
    KillAndStart();
    stream = Reattach(address_, client, next - 1);
    ASSERT_NE(stream, nullptr);
  }
  int64_t runs = 0, cancelled = 0;
  for (const auto& [sequence, code] : codes) {
    (code == 0 ? runs : cancelled) += 1;
    EXPECT_TRUE(code == 0 || code == grpc::CANCELLED) << code;
  }
  runs -= 5;  // the Cancels
  EXPECT_GT(cancelled, 0);
  std::string sum;
  client.channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  client.blobs = v1::BlobService::NewStub(client.channel);
  ASSERT_TRUE(client.Download(2, next - 1, &sum).ok());
  EXPECT_EQ(Floats(sum), std::vector<float>(kFloats, static_cast<float>(runs)));
}

TEST_F(SnapshotTest, ImagesAreTakenAndSegmentsGo) {
  Start();
  Summer summer(address_, 1);
  for (int images = 0; images < 2; ++images) {
    summer.Step();
    ASSERT_TRUE(summer.Settle());
    const auto before = Files(".journal");
    ASSERT_TRUE(WaitForSegmentAfter(before));
  }
  EXPECT_TRUE(IsProtected());
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

}  // namespace
}  // namespace kiln::testing
