// Sessions that survive a daemon that is killed: real kilnd processes and SIGKILL.
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/exact_client.h"
#include "tests/server/snapshot_fixture.h"

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
  KillAndStart();  // with much that has not been answered
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

// Tensors that lie in parts, copies and programs elsewhere come from the image and the journal.
TEST_F(SnapshotTest, SeveralDevices) {
  config_ = "[devices]\ncpu_devices = 2\n";
  Start();
  Client client(address_, 0, "cpu:0", kSeldom);
  ASSERT_TRUE(Comes([&] { return IsProtected(); }));
  v1::Placement halves;
  v1::Mesh::Axis* axis = halves.mutable_mesh()->add_axes();
  axis->set_name("data");
  axis->set_size(2);
  halves.mutable_spec()->add_dims()->add_axes(0);
  for (const char* device : {"cpu:1", "cpu:0"}) halves.add_devices(device);
  auto stream = client.Connect();
  v1::ConnectRequest write = Write(1, {1, 2, 3, 4});
  *write.mutable_write()->mutable_placement() = halves;
  EXPECT_FALSE(stream->Call(write).has_error());
  v1::ConnectRequest move;
  move.mutable_move()->set_source(1);
  move.mutable_move()->set_handle(2);
  move.mutable_move()->mutable_placement()->add_devices("cpu:1");
  EXPECT_FALSE(stream->Call(move).has_error());
  v1::ConnectRequest define = Define(1, AddGraph(4));
  define.mutable_define_program()->add_devices("cpu:1");
  EXPECT_FALSE(stream->Call(define).has_error());
  EXPECT_FALSE(stream->Call(RunProgram(1, {2, 2}, {3})).has_error());
  *move.mutable_move()->mutable_placement() = halves;
  move.mutable_move()->set_source(3);
  move.mutable_move()->set_handle(4);
  EXPECT_FALSE(stream->Call(move).has_error());
  uint64_t received = 5;
  // From the journal; then from the image that is taken because there was one.
  for (const bool from_image : {false, true}) {
    if (from_image) {
      ASSERT_TRUE(Comes([&] { return Files(".journal").size() == 1; }));
    }
    KillAndStart();
    stream = Reattach(address_, client, received);
    ASSERT_NE(stream, nullptr);
    EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(Floats(stream->Call(Read(4)).data()), ElementsAre(2, 4, 6, 8));
    EXPECT_FALSE(stream->Call(RunProgram(1, {2, 3}, {from_image ? 6UL : 5UL})).has_error());
    received += 3;
  }
}

// Whatever the moment of the kill, and whatever the connection does.
TEST_F(SnapshotTest, EachOperationTakesEffectOnce) {
  const char* given = std::getenv("KILN_SEED");
  const uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  const char* operations = std::getenv("KILN_OPERATIONS");
  const int steps = operations == nullptr ? 3000 : std::atoi(operations);
  Random random(seed), accidents(seed + 1);
  Start();
  Client client(address_, 0, "", 1);
  Sender sender(address_, client);
  for (Exact& define : Model::First()) sender.Send(std::move(define));
  sender.AnswerAllBut(0);
  Model model;
  int kills = 0;
  for (int step = 0; step < steps && sender.wrong().empty(); ++step) {
    sender.Send(model.Next(random));
    if (sender.in_flight() > accidents() % 256) sender.AnswerAllBut(accidents() % 64);
    if (accidents() % 200 == 0) sender.Cut();
    if (accidents() % 1000 == 0) {
      // So that another process takes it over, whose numbers go on behind these.
      sender.Send(model.Leave("exact"));
      sender.AnswerAllBut(0);
      sender.Cut();
      if (accidents() % 2 == 0) KillAndStart(), ++kills;
      v1::AttachSessionRequest request;
      request.set_name("exact");
      v1::AttachSessionResponse taken;
      grpc::Status status;
      do {
        const auto stub = v1::SessionService::NewStub(
            grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
        grpc::ClientContext context;
        status = stub->AttachSession(&context, request, &taken);
      } while (status.error_code() == grpc::UNAVAILABLE);
      ASSERT_TRUE(status.ok()) << status.error_message();
      client.session = taken.session();
      for (Exact& define : model.DefineAgain()) sender.Send(std::move(define));
    }
    if (accidents() % 250 != 0) continue;
    for (uint64_t more = accidents() % 100; more > 0; --more) sender.Send(model.Next(random));
    if (accidents() % 2 == 0) sender.Cut();
    // Now and then it is stopped as it should be.
    End(accidents() % 4 == 0 ? SIGTERM : SIGKILL);
    Start();
    // Or the next one, while it restores the session.
    for (; accidents() % 2 == 0; ++kills) {
      absl::SleepFor(absl::Milliseconds(accidents() % 50));
      End(SIGKILL);
      Start();
    }
    sender.Cut();
    ++kills;
  }
  for (Exact& read : model.Last()) sender.Send(std::move(read));
  sender.AnswerAllBut(0);
  EXPECT_EQ(sender.wrong(), "") << "KILN_SEED=" << seed;
  EXPECT_GT(kills, 3);
}

// A run is cancelled as a whole, or not at all, and what comes after it sees that after a kill,
// too.
TEST_F(SnapshotTest, WhatWasCancelledStaysSo) {
  Start();
  Client client(address_, 0, "", kSeldom);
  auto stream = client.Connect();
  constexpr int64_t kFloats = 1 << 20;
  v1::Graph graph = AccumulateGraph(kFloats);
  graph.clear_outputs();
  stream->Send(Define(1, graph), 1);
  stream->Send(Write(1, std::vector<float>(1, 0)), 2);  // refused: its size
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
    for (int i = 0; i < 200; ++i) stream->Send(RunProgram(1, {2, 3}, {}), next++);
    stream->Send(CancelFrom(first), next++);
    stream->Send(RunProgram(1, {2, 3}, {}), next++);
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
  const auto first = Files(".journal");
  ASSERT_THAT(first, SizeIs(1));
  for (int images = 0; images < 2; ++images) {
    summer.Step();
    ASSERT_TRUE(summer.Settle());
    const auto before = Files(".journal");
    ASSERT_TRUE(
        Comes([&] { return Files(".journal") != before && Files(".journal").size() == 1; }));
  }
  EXPECT_TRUE(IsProtected());
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

}  // namespace
}  // namespace kiln::testing
