// State that a restart must preserve even at a bad moment: runs that are being cancelled, limits
// that were lowered, a full compile queue, devices that hang.
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/digest/sha256.h"
#include "server/testing/fake_compiler.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;

// Returns true if this many operations of the only user have been received and not answered.
bool AreWaiting(TestDaemon& daemon, int operations) {
  const std::string metrics = daemon.daemon().MetricsText();
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (absl::StartsWith(line, "kiln_user_waiting_operations{") &&
        absl::EndsWith(line, absl::StrCat("} ", operations)))
      return true;
  }
  return false;
}

// A program whose runs are split: its kernels take longer than a slice.
absl::StatusOr<compiler::CompiledProgram> CompileLong(const graph::Graph& graph,
                                                      const drivers::Target& target,
                                                      const compiler::Options& options) {
  auto program = FakeCompile(graph, target, options);
  if (program.ok())
    for (auto& kernel : program->kernels) kernel.image.flops = 20'000;
  return program;
}

// Blocks compilation while it is shut.
class CompileGate {
 public:
  void Shut() { Set(false); }
  void Open() { Set(true); }
  runtime::CompileFunction Compile() {
    return [this](const graph::Graph& graph, const drivers::Target& target,
                  const compiler::Options& options) {
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(&open_));
      }
      return FakeCompile(graph, target, options);
    };
  }

 private:
  void Set(bool open) {
    absl::MutexLock lock(&mutex_);
    open_ = open;
  }

  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
};

// The device still has the run when the daemon stops, so that it has not been answered yet.
TEST(RestartFaults, ACancelledRunIsNotDoneAgain) {
  TestDaemonOptions options;
  options.prepare = [](FakeDevice& device) { device.TakeTime(); };
  options.compile = CompileLong;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 2}, {10}));
  const auto read = stream->Send(Read(10));
  const auto barrier = stream->Send(Barrier());
  ASSERT_FALSE(stream->Call(Write(3, {1})).has_error());  // the run is handed over
  const auto cancel = stream->Send(CancelFrom(run));
  ASSERT_FALSE(stream->Answer(cancel).has_error());
  EXPECT_EQ(stream->received().count(run), 0) << "the device still uses its memory";
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  stream = Reattach(daemon.address(), client, kCounterOperations);
  ASSERT_NE(stream, nullptr);
  for (const auto sequence : {run, read})
    EXPECT_EQ(Reason(stream->Answer(sequence).error()), "CANCELLED") << sequence;
  EXPECT_FALSE(stream->Answer(barrier).has_error());
  EXPECT_EQ(Reason(stream->Call(Read(10)).error()), "CANCELLED");
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(0));
  EXPECT_FALSE(stream->Call(RunProgram(1, {1, 2}, {11})).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
}

// Neither the run nor its Cancel was executed, and the client sends both again.
TEST(RestartFaults, WhatWasCancelledBeforeItBeganStaysCancelled) {
  CompileGate gate;
  TestDaemonOptions options;
  options.compile = gate.Compile();
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {0}));
  stream->Call(Write(2, {1}));
  gate.Shut();
  stream->Send(Define(1, AccumulateGraph(1)));
  const auto run = stream->Send(RunProgram(1, {1, 2}, {10}));
  stream->Send(CancelFrom(run));
  ASSERT_TRUE(Eventually([&] { return AreWaiting(daemon, 3); }));
  daemon.Restart(Daemon::Sessions::kKeep, [&] { gate.Open(); });
  // Restarts once more before the client has reconnected.
  daemon.Restart();
  stream = Reattach(daemon.address(), client, 2);
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(stream->last_sequence(), run - 1);
  EXPECT_EQ(Reason(stream->Call(RunProgram(1, {1, 2}, {10})).error()), "CANCELLED");
  EXPECT_FALSE(stream->Call(CancelFrom(run)).has_error());
  EXPECT_FALSE(stream->Call(RunProgram(1, {1, 2}, {11})).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
}

// The client that takes the session over reuses their numbers.
TEST(RestartFaults, WhatWasCancelledDoesNotConcernWhoTakesOver) {
  CompileGate gate;
  TestDaemonOptions options;
  options.compile = gate.Compile();
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {0}));
  stream->Call(Write(2, {1}));
  stream->Call(Detach("left", 3600, {{"1", 1}, {"2", 2}}));
  gate.Shut();
  stream->Send(Define(1, AccumulateGraph(1)));
  stream->Send(CancelFrom(stream->Send(RunProgram(1, {1, 2}, {10}))));
  ASSERT_TRUE(Eventually([&] { return AreWaiting(daemon, 3); }));
  daemon.Restart(Daemon::Sessions::kKeep, [&] { gate.Open(); });
  const auto stub = v1::SessionService::NewStub(
      grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
  const Taken taken = TakeOver(*stub, "left");
  ASSERT_TRUE(taken.status.ok()) << taken.status.error_message();
  client.session = taken.session.session();
  stream = Reattach(daemon.address(), client, taken.session.last_sequence());
  ASSERT_NE(stream, nullptr);
  EXPECT_FALSE(stream->Call(RunProgram(1, {1, 2}, {10})).has_error());
}

// The limit of waiting programs would not be enough for the existing ones.
TEST(RestartFaults, AFullCompileQueueRefusesNothingThatWasThere) {
  constexpr uint64_t kPrograms = 20;
  CompileGate gate;
  TestDaemonOptions options;
  options.compile = gate.Compile();
  options.configure = [](config::Config& config) { config.compiles_waiting_limit = 1; };
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  for (uint64_t i = 1; i <= kPrograms; ++i) {
    const auto size = static_cast<int64_t>(i);
    ASSERT_FALSE(stream->Call(Define(i, AddGraph(size))).has_error());
    ASSERT_FALSE(stream->Call(Write(i, std::vector<float>(i, 1))).has_error());
  }
  daemon.Restart(Daemon::Sessions::kKeep, [&] { gate.Shut(); });
  stream = Reattach(daemon.address(), client, 2 * kPrograms);
  ASSERT_NE(stream, nullptr);
  gate.Open();
  for (uint64_t i = 1; i <= kPrograms; ++i) {
    const v1::Result ran = stream->Call(RunProgram(i, {i, i}, {100 + i}));
    EXPECT_FALSE(ran.has_error()) << i << ": " << ran.error().message();
  }
}

// The existing tables, programs and uploads stay, and so do operations that are repeated.
TEST(RestartFaults, LoweredLimitsTakeNothingAway) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  for (uint64_t program : {2, 3})
    ASSERT_FALSE(
        stream->Call(Define(program, AddGraph(static_cast<int64_t>(program)))).has_error());
  ASSERT_TRUE(client.Upload("mine", std::string(1000, 'x')).ok());
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 2}, {10}));
  ASSERT_FALSE(stream->Call(Write(3, {1})).has_error());
  const std::string user = Sessions(daemon.address()).sessions(0).user();
  const auto limit = [&](const std::vector<std::string>& resources, int64_t amount) {
    Client admin(daemon.address());  // its own session has no room later on
    grpc::ClientContext context;
    v1::SetQuotaRequest request;
    request.set_user(user);
    for (const std::string& resource : resources) (*request.mutable_limits())[resource] = amount;
    v1::SetQuotaResponse response;
    EXPECT_TRUE(admin.admin->SetQuota(&context, request, &response).ok());
  };
  limit({"programs", "host_memory", "device_memory", "buffers"}, 1);
  daemon.config().blob_limit_bytes = 500;
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  ASSERT_TRUE(Eventually([&] { return KeptFile(daemon).empty(); }));
  ASSERT_TRUE(Eventually([&] { return daemon.device().lists_run() == 1; }));
  stream = Reattach(daemon.address(), client, kCounterOperations + 2);
  ASSERT_NE(stream, nullptr);
  EXPECT_FALSE(stream->Answer(run).has_error());
  limit({"host_memory"}, 1 << 30);  // reading needs some
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
  EXPECT_EQ(Reason(stream->Call(Define(4, AddGraph(4))).error()), "QUOTA_EXCEEDED");
  EXPECT_FALSE(stream->Call(Release({1, 2, 3, 10})).has_error());
  for (uint64_t program : {1, 2, 3}) {
    v1::ConnectRequest release;
    release.mutable_release_program()->set_program(program);
    EXPECT_FALSE(stream->Call(release).has_error()) << program;
  }
}

// A blob that two sessions share is restored for each of them, as far as there is room.
TEST(RestartFaults, BlobsOfSeveralSessionsStayWithinTheLimit) {
  const std::string data(1000, 'x');
  const std::string name = "sha256:" + Sha256Hex(data);
  TestDaemon daemon;
  Client first(daemon.address()), second(daemon.address());
  const auto is_there = [&](Client& client) {
    grpc::ClientContext context;
    v1::FindBlobsRequest request;
    request.set_session_id(client.session.session_id());
    request.add_blobs(name);
    v1::FindBlobsResponse response;
    EXPECT_TRUE(client.blobs->FindBlobs(&context, request, &response).ok());
    return response.found_size() == 1;
  };
  ASSERT_TRUE(first.Upload(name, data).ok());
  ASSERT_TRUE(is_there(first) && is_there(second));
  daemon.config().blob_limit_bytes = 1500;
  daemon.Restart();
  ASSERT_NE(Reattach(daemon.address(), first), nullptr);
  auto stream = Reattach(daemon.address(), second);
  ASSERT_NE(stream, nullptr);
  EXPECT_TRUE(is_there(second));
  EXPECT_FALSE(stream->Call(WriteBlob(1, name, 250)).has_error());
}

// A device whose memory the host cannot access and whose copies never complete.
struct HangingDaemon {
  explicit HangingDaemon(absl::Duration patience)
      : daemon([&] {
          TestDaemonOptions options;
          options.devices = 2;
          options.copy_timeout = patience;
          options.prepare = [this](FakeDevice& device) {
            device.HideMemory();
            if (hangs && device.info().name == "cpu:0") device.HoldCopies();
          };
          return options;
        }()) {}
  bool hangs = false;
  TestDaemon daemon;
};

TEST(RestartFaults, ADeviceThatHangsHoldsUpNobodyElse) {
  HangingDaemon hanging(absl::Milliseconds(20));
  TestDaemon& daemon = hanging.daemon;
  Client first(daemon.address(), 0, "cpu:0"), second(daemon.address(), 0, "cpu:1");
  for (Client* client : {&first, &second})
    ASSERT_FALSE(client->Connect()->Call(Write(1, {4})).has_error());
  hanging.hangs = true;
  daemon.Restart();
  auto stream = Reattach(daemon.address(), second, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(4));
  ASSERT_TRUE(Eventually([&] {
    Client other(daemon.address(), 0, "cpu:1");
    Stream asks(*other.sessions, first.session.session_id());
    return absl::StrContains(asks.End().error_message(), "did not copy the bytes of a tensor");
  }));
  daemon.device(0).LetCopiesGo();
  stream = Reattach(daemon.address(), first, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(4));
}

TEST(RestartFaults, ADeviceThatHangsDoesNotHoldUpTheDaemonsEnd) {
  HangingDaemon hanging(absl::InfiniteDuration());
  TestDaemon& daemon = hanging.daemon;
  Client client(daemon.address(), 0, "cpu:0");
  ASSERT_FALSE(client.Connect()->Call(Write(1, {4})).has_error());
  hanging.hangs = true;
  daemon.Restart();
  hanging.hangs = false;
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device(0).LetCopiesGo(); }, absl::ZeroDuration());
  auto stream = Reattach(daemon.address(), client, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(4));
}

// Also when a daemon stops: sessions on other devices are kept.
TEST(RestartFaults, OnlySessionsOfADeviceThatHangsAreLost) {
  HangingDaemon hanging(absl::Milliseconds(20));
  TestDaemon& daemon = hanging.daemon;
  Client first(daemon.address(), 0, "cpu:0"), second(daemon.address(), 0, "cpu:1");
  ASSERT_FALSE(first.Connect()->Call(Write(1, {4})).has_error());
  ASSERT_FALSE(second.Connect()->Call(Write(1, std::vector<float>(1000, 5))).has_error());
  daemon.device(0).HoldCopies();
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device(0).LetCopiesGo(); }, absl::ZeroDuration());
  grpc::Status why;
  EXPECT_EQ(Reattach(daemon.address(), first, 0, &why), nullptr);
  EXPECT_EQ(Reason(why), "SESSION_LOST");
  auto stream = Reattach(daemon.address(), second, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(Floats(stream->Call(Read(1)).data()), std::vector<float>(1000, 5));
}

}  // namespace
}  // namespace kiln::testing
