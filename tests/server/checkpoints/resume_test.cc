// A lost connection neither loses nor repeats an operation.
#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Resume, OperationsRunOnceAndAnswersAreRepeated) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 2}, {10}));
  const auto read = stream->Send(Read(1));
  ASSERT_TRUE(Eventually([&] {
    grpc::ClientContext context;
    v1::ListSessionsResponse sessions;
    client.sessions->ListSessions(&context, {}, &sessions);
    return sessions.sessions(0).runs() == 1;
  }));
  stream->Drop();
  daemon.device().LetGo();

  auto second = client.Connect(/*acknowledged=*/3);
  EXPECT_GE(second->last_sequence(), run);
  // The client cannot know what arrived, so it sends both again.
  second->Send(RunProgram(1, {1, 2}, {10}), run);
  second->Send(Read(1), read);
  EXPECT_THAT(Floats(second->Answer(read).data()), ElementsAre(1));
  EXPECT_FALSE(second->Answer(run).has_error());
  EXPECT_THAT(second->received(), ElementsAre(Pair(run, 1), Pair(read, 1)));
  EXPECT_EQ(daemon.device().lists_run(), 1);
}

// The default lease: a remote process may be on a laptop that sleeps; a local one has exited.
TEST(Resume, ALaptopThatSleepsKeepsItsSession) {
  TestDaemon daemon;
  Client laptop(daemon.daemon().listening()[1]), local(daemon.address());
  Client watcher(daemon.address(), /*lease_seconds=*/3600);
  const auto connected = [&] {
    grpc::ClientContext context;
    v1::ListSessionsResponse sessions;
    watcher.sessions->ListSessions(&context, {}, &sessions);
    return std::count_if(sessions.sessions().begin(), sessions.sessions().end(),
                         [](const v1::Session& session) { return session.connected(); });
  };
  laptop.Connect()->Call(Write(1, {1}));
  local.Connect()->Call(Write(1, {1}));
  ASSERT_TRUE(Eventually([&] { return connected() == 0; }));
  daemon.Advance(absl::Seconds(60));
  EXPECT_TRUE(laptop.Connect()->attached());
  EXPECT_TRUE(local.Connect()->attached());
  ASSERT_TRUE(Eventually([&] { return connected() == 0; }));
  daemon.Advance(absl::Seconds(14 * 60));
  EXPECT_EQ(Reason(local.Connect()->End()), "UNKNOWN_SESSION");
  EXPECT_TRUE(laptop.Connect()->attached());
  ASSERT_TRUE(Eventually([&] { return connected() == 0; }));
  daemon.Advance(absl::Seconds(15 * 60));
  EXPECT_EQ(Reason(laptop.Connect()->End()), "UNKNOWN_SESSION");
}

TEST(Resume, AcknowledgedAnswersAreForgotten) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {1}));
  stream->Call(Write(2, {1}));
  v1::ConnectRequest request = Write(3, {1});
  request.set_acknowledged(1);
  stream->Call(request);
  stream->Drop();
  auto second = client.Connect(/*acknowledged=*/2);
  EXPECT_EQ(second->last_sequence(), 3);
  second->set_next_sequence(4);
  second->Call(Barrier());
  EXPECT_THAT(second->received(), ElementsAre(Pair(3, 1), Pair(4, 1)));
}

// With so many cuts, the test exceeds its time limit if each of them takes seconds.
TEST(Resume, ManyCutsWithAnswersOutstanding) {
  TestDaemon daemon;
  Client client(daemon.address());
  client.Connect()->Call(Write(1, {1}));
  for (int cut = 0; cut < 200; ++cut) {
    auto stream = client.Connect(/*acknowledged=*/1);
    // Everything requested so far is answered again.
    for (uint64_t sequence = 2; sequence <= stream->last_sequence(); ++sequence)
      EXPECT_THAT(Floats(stream->Answer(sequence).data()), ElementsAre(1));
    stream->Call(Read(1));
    stream->Drop();
  }
}

TEST(Resume, NewerStreamTakesOver) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto first = client.Connect();
  first->Call(Write(1, {1}));
  auto second = client.Connect(1);
  const grpc::Status status = first->End();
  EXPECT_EQ(status.error_code(), grpc::ABORTED);
  EXPECT_EQ(Reason(status), "REPLACED");
  EXPECT_THAT(Floats(second->Call(Read(1)).data()), ElementsAre(1));
}

TEST(Resume, ManyDropsInAPipeline) {
  TestDaemon daemon;
  Client client(daemon.address());
  {
    auto stream = client.Connect();
    DefineCounter(*stream);
  }
  constexpr uint64_t kRuns = 500;
  constexpr uint64_t kEnd = kCounterOperations + 1 + kRuns;
  constexpr uint64_t kAcknowledged = kCounterOperations;
  int drops = 0;
  while (true) {
    auto stream = client.Connect(kAcknowledged);
    const uint64_t received = stream->last_sequence();
    if (received + 30 >= kEnd) break;
    // Received operations stay received; the client sends the rest again, and the connection is
    // lost in the middle of it.
    for (uint64_t sequence = received + 1; sequence <= received + 30; ++sequence) {
      stream->Send(RunProgram(1, {1, 2}, {100 + sequence}), sequence);
    }
    EXPECT_FALSE(stream->Answer(received + 5).has_error());
    stream->Drop();
    ++drops;
  }
  EXPECT_GE(drops, 10);
  auto stream = client.Connect(kAcknowledged);
  for (uint64_t sequence = stream->last_sequence() + 1; sequence < kEnd; ++sequence) {
    stream->Send(RunProgram(1, {1, 2}, {100 + sequence}), sequence);
  }
  stream->set_next_sequence(kEnd);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(kRuns));
  EXPECT_EQ(daemon.device().lists_run(), kRuns);
}

TEST(Resume, UnacknowledgedAnswersAreBounded) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  constexpr int kBatch = 1000;
  uint64_t last = 0;
  for (int batch = 0; batch < 100; ++batch) {
    for (int i = 0; i < kBatch; ++i) last = stream->Send(Read(7));
    if (stream->Answer(last).error().code() != grpc::NOT_FOUND) break;
  }
  const grpc::Status status = stream->End();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("acknowledged"));
  auto second = client.Connect(last);
  EXPECT_FALSE(second->Call(Barrier()).has_error());
}

// A value that was read stays on the device until the client has it, and takes no host memory
// meanwhile.
TEST(Resume, UnacknowledgedReadsAreRepeated) {
  TestDaemonOptions options;
  options.memory_bytes = 8 << 20;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  const std::vector<float> values(1 << 18, 1.5f);
  stream->Call(Write(1, values));
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) last = stream->Send(Read(1));
  stream->Call(Release({1}));
  EXPECT_EQ(daemon.device().allocated_bytes(), 1 << 20);
  stream->Drop();
  auto second = client.Connect(last - 1);
  EXPECT_EQ(Floats(second->Answer(last).data()), values);
  v1::ConnectRequest acknowledging = Barrier();
  acknowledging.set_acknowledged(last);
  second->Call(acknowledging);
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 0; }));
}

}  // namespace
}  // namespace kiln::testing
