// A restarted daemon continues the sessions that it had, and executes each operation once.
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Restart, ValuesProgramsAndNumbersGoOn) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  stream->Call(RunProgram(1, {1, 2}, {10}));
  const auto last = stream->Send(Release({10}));
  stream->Answer(last);
  daemon.Restart();
  EXPECT_EQ(Reason(stream->End()), "RESTARTING");
  auto second = Reattach(daemon.address(), client, last);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->last_sequence(), last);
  EXPECT_FALSE(second->Call(RunProgram(1, {1, 2}, {11})).has_error());
  EXPECT_THAT(Floats(second->Call(Read(1)).data()), ElementsAre(2));
  // Released handles stay released, and numbers must not be reused.
  EXPECT_THAT(second->Call(Read(10)).error().message(), HasSubstr("handle 10 has been released"));
  EXPECT_EQ(Reason(second->Call(Write(11, {1})).error()), "HANDLE_REUSED");
  EXPECT_EQ(Reason(second->Call(Define(1, AddGraph(1))).error()), "PROGRAM_REUSED");
  EXPECT_TRUE(KeptFile(daemon).empty());
  // New sessions have new names.
  EXPECT_NE(Client(daemon.address()).session.name(), client.session.name());
}

TEST(Restart, UnacknowledgedAnswersAreRepeated) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {1, 2}));
  const auto read = stream->Send(Read(1));
  stream->Answer(read);
  const auto failed = stream->Send(Read(7));
  stream->Answer(failed);
  stream->Call(Release({1}));
  daemon.Restart();
  auto second = Reattach(daemon.address(), client, 1);
  EXPECT_THAT(Floats(second->Answer(read).data()), ElementsAre(1, 2));
  EXPECT_EQ(Reason(second->Answer(failed).error()), "UNKNOWN_HANDLE");
}

// The next daemon executes the runs that wait in the queue, and those that the device did not
// complete in time.
TEST(Restart, WhatHasNotRunIsRun) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  constexpr uint64_t kRuns = 100;
  for (uint64_t i = 0; i < kRuns; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
  const auto barrier = stream->Send(Barrier());
  const auto read = stream->Send(Read(1));
  const auto early = stream->Send(Read(14));
  stream->Send(Release({14}));
  // Sent after them and answered at once, so the daemon has received them all.
  const auto last = stream->Send(Write(3, {1}));
  ASSERT_FALSE(stream->Answer(last).has_error());
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  auto second = Reattach(daemon.address(), client, kCounterOperations);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->last_sequence(), last);
  EXPECT_THAT(Floats(second->Answer(read).data()), ElementsAre(kRuns));
  EXPECT_THAT(Floats(second->Answer(early).data()), ElementsAre(5));
  EXPECT_FALSE(second->Answer(barrier).has_error());
  for (uint64_t sequence = kCounterOperations + 1; sequence <= last; ++sequence)
    EXPECT_FALSE(second->Answer(sequence).has_error()) << sequence;
  for (const auto& [sequence, times] : second->received()) EXPECT_EQ(times, 1) << sequence;
  EXPECT_EQ(daemon.device().lists_run(), kRuns);
}

// Two results that are one value (runtime/program/share_results.h).
TEST(Restart, EqualResultsOfWhatHasNotRunAreThere) {
  TestDaemonOptions options;
  options.compile = [](const auto& graph, const auto& target, const auto& compile_options) {
    auto program = FakeCompile(graph, target, compile_options);
    if (program.ok() && graph.outputs.size() == 2) {
      const compiler::Argument first = program->calls[0].arguments.back();
      const compiler::Argument second = program->calls[1].arguments.back();
      program->calls.pop_back();
      program->copies.push_back({first, second});
    }
    return program;
  };
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  v1::Graph graph = AddGraph(1);
  graph.add_outputs(graph.outputs(0));
  stream->Call(Define(1, graph));
  stream->Call(Write(1, {2}));
  daemon.device().Hold();
  stream->Send(RunProgram(1, {1, 1}, {10, 11}));
  stream->Send(RunProgram(1, {10, 11}, {12, 13}));
  stream->Send(Release({10}));
  const auto last = stream->Send(Write(3, {1}));
  ASSERT_FALSE(stream->Answer(last).has_error());
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  auto second = Reattach(daemon.address(), client, last);
  ASSERT_NE(second, nullptr);
  EXPECT_THAT(Floats(second->Call(Read(11)).data()), ElementsAre(4));
  EXPECT_THAT(Floats(second->Call(Read(12)).data()), ElementsAre(8));
  EXPECT_THAT(Floats(second->Call(Read(13)).data()), ElementsAre(8));
}

TEST(Restart, AgainWhileItResumes) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  for (int round = 1; round <= 3; ++round) {
    daemon.device().Hold();
    for (uint64_t i = 0; i < 10; ++i)
      stream->Send(RunProgram(1, {1, 2}, {static_cast<uint64_t>(100 * round) + i}));
    const auto last = stream->Send(Write(static_cast<uint64_t>(1000 + round), {1}));
    ASSERT_FALSE(stream->Answer(last).has_error());
    daemon.Restart(
        Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
    // At once, before a client has attached.
    daemon.Restart();
    stream = Reattach(daemon.address(), client, last);
    ASSERT_NE(stream, nullptr);
    ASSERT_EQ(stream->last_sequence(), last);
  }
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(30));
}

TEST(Restart, AFailedValueStaysFailed) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, NegGraph(1)));  // the fake device's kernel for it fails
  stream->Call(Write(1, {1}));
  const v1::Result failed = stream->Call(RunProgram(1, {1}, {2}));
  ASSERT_TRUE(failed.has_error());
  daemon.Restart();
  stream = Reattach(daemon.address(), client, 3);
  const v1::Result read = stream->Call(Read(2));
  EXPECT_EQ(read.error().code(), failed.error().code());
  EXPECT_EQ(read.error().message(), failed.error().message());
}

TEST(Restart, BlobsThatWereUploadedAreThere) {
  TestDaemon daemon;
  Client client(daemon.address());
  const float value = 3;
  ASSERT_TRUE(
      client.Upload("mine", std::string(reinterpret_cast<const char*>(&value), sizeof(value)))
          .ok());
  daemon.Restart();
  auto stream = Reattach(daemon.address(), client);
  ASSERT_NE(stream, nullptr);
  EXPECT_FALSE(stream->Call(WriteBlob(1, "mine", 1)).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(3));
}

// The client could not connect while there was no daemon.
TEST(Restart, ALeaseBeginsAnew) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/100);
  client.Connect()->Call(Write(1, {1}));
  ASSERT_TRUE(Eventually([&] { return !Sessions(daemon.address()).sessions(0).connected(); }));
  daemon.Advance(absl::Seconds(90));
  daemon.Restart();
  ASSERT_TRUE(Eventually([&] { return KeptFile(daemon).empty(); }));
  daemon.Advance(absl::Seconds(90));
  EXPECT_NE(Reattach(daemon.address(), client), nullptr);
  ASSERT_TRUE(Eventually([&] { return !Sessions(daemon.address()).sessions(0).connected(); }));
  daemon.Advance(absl::Seconds(101));
  grpc::Status why;
  EXPECT_EQ(Reattach(daemon.address(), client, 0, &why), nullptr);
  EXPECT_EQ(Reason(why), "UNKNOWN_SESSION");
}

// Downloads are not ordered with the stream: the value that they ask for may still be computed.
TEST(Restart, ADownloadWaitsForWhatIsDoneAgain) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 2}, {10}));
  ASSERT_TRUE(Eventually([&] { return Sessions(daemon.address()).sessions(0).runs() == 1; }));
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  auto second = Reattach(daemon.address(), client, kCounterOperations);
  ASSERT_NE(second, nullptr);
  Client other(daemon.address());
  other.session = client.session;
  std::string data;
  const grpc::Status downloaded = other.Download(10, run, &data);
  EXPECT_TRUE(downloaded.ok()) << downloaded.error_message();
  EXPECT_THAT(Floats(data), ElementsAre(1));
}

TEST(Restart, AnotherUsersIdIsNoneThatThereIs) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(1000, 1.5f)));
  daemon.set_memory_bytes(1000);  // it cannot be restored yet
  daemon.Restart();
  Client admin(daemon.address());
  grpc::ClientContext context;
  v1::AddUserRequest request;
  request.set_name("bob");
  v1::AddUserResponse added;
  ASSERT_TRUE(admin.admin->AddUser(&context, request, &added).ok());
  Client bob(daemon.address(), Client::Login{.token = added.token()});
  Stream asks(*bob.sessions, client.session.session_id());
  EXPECT_EQ(Reason(asks.End()), "SESSION_LOST");  // the same as for any id of another daemon
}

TEST(Restart, ARevokedUsersSessionsDoNotComeBack) {
  TestDaemon daemon;
  std::string token;
  {
    Client admin(daemon.address());
    grpc::ClientContext context;
    v1::AddUserRequest request;
    request.set_name("ann");
    v1::AddUserResponse added;
    ASSERT_TRUE(admin.admin->AddUser(&context, request, &added).ok());
    token = added.token();
  }
  Client ann(daemon.address(), Client::Login{.token = token});
  ann.Connect()->Call(Write(1, std::vector<float>(1000, 1.5f)));
  daemon.set_memory_bytes(1000);  // it cannot be restored yet
  daemon.Restart();
  EXPECT_FALSE(KeptFile(daemon).empty());
  Client admin(daemon.address());
  grpc::ClientContext context;
  v1::RevokeUserRequest request;
  request.set_name("ann");
  v1::RevokeUserResponse revoked;
  ASSERT_TRUE(admin.admin->RevokeUser(&context, request, &revoked).ok());
  EXPECT_TRUE(Eventually([&] { return KeptFile(daemon).empty(); }));
  daemon.set_memory_bytes(1 << 20);
  daemon.Restart();
  const v1::ListSessionsResponse all = Sessions(daemon.address());
  for (const v1::Session& session : all.sessions()) EXPECT_NE(session.user(), "ann");
}

// A user keeps what they already have, as without a restart.
TEST(Restart, ALimitThatWasLoweredTakesNothingAway) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  for (uint64_t handle : {1, 2, 3})
    ASSERT_FALSE(stream->Call(Write(handle, std::vector<float>(1000, 7))).has_error());
  v1::ListSessionsResponse sessions = Sessions(daemon.address());
  grpc::ClientContext context;
  v1::SetQuotaRequest request;
  request.set_user(sessions.sessions(0).user());
  (*request.mutable_limits())["device_memory"] = 8000;
  (*request.mutable_limits())["buffers"] = 2;
  v1::SetQuotaResponse response;
  ASSERT_TRUE(client.admin->SetQuota(&context, request, &response).ok());
  daemon.Restart();
  grpc::Status why;
  auto second = Reattach(daemon.address(), client, 0, &why);
  ASSERT_NE(second, nullptr) << why.error_message();
  EXPECT_EQ(Floats(second->Call(Read(3)).data()), std::vector<float>(1000, 7));
  EXPECT_EQ(Reason(second->Call(Write(4, {1})).error()), "QUOTA_EXCEEDED");
  // The answer to the read holds value 3 until it is acknowledged.
  ASSERT_FALSE(second->Call(Release({1, 2, 3})).has_error());
  EXPECT_FALSE(second->Call(Write(5, {1})).has_error());
}

TEST(Restart, WithoutKeepingTheSessionIsLost) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {1}));
  daemon.Restart(Daemon::Sessions::kEnd);
  EXPECT_EQ(Reason(stream->End()), "SHUTTING_DOWN");
  grpc::Status why;
  EXPECT_EQ(Reattach(daemon.address(), client, 0, &why), nullptr);
  EXPECT_EQ(Reason(why), "SESSION_LOST");
  EXPECT_THAT(why.error_message(), HasSubstr("its daemon was killed"));
}

TEST(Restart, ASessionWithoutRoomWaitsForIt) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(1000, 1.5f)));
  daemon.set_memory_bytes(1000);
  daemon.Restart();
  {
    Client other(daemon.address());
    Stream asks(*other.sessions, client.session.session_id());
    EXPECT_FALSE(asks.attached());
    EXPECT_EQ(Reason(asks.End()), "RESTARTING");
  }
  EXPECT_FALSE(KeptFile(daemon).empty());
  daemon.set_memory_bytes(1 << 20);
  daemon.Restart();
  stream = Reattach(daemon.address(), client, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(Floats(stream->Call(Read(1)).data()), std::vector<float>(1000, 1.5f));
}

TEST(Restart, WhatTheDiskHasNoRoomForIsLost) {
  TestDaemon daemon;
  daemon.config().saved_sessions_limit_bytes = 2000;
  daemon.Restart();
  Client large(daemon.address()), small(daemon.address());
  large.Connect()->Call(Write(1, std::vector<float>(1000)));
  small.Connect()->Call(Write(1, {4}));
  daemon.Restart();
  grpc::Status why;
  EXPECT_EQ(Reattach(daemon.address(), large, 0, &why), nullptr);
  EXPECT_EQ(Reason(why), "SESSION_LOST");
  auto stream = Reattach(daemon.address(), small, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(4));
}

// With damage of any kind, the daemon starts without the session and reports it.
TEST(Restart, ADamagedFileIsNoSession) {
  const auto flip = [](size_t from_end) {
    return [from_end](std::string bytes) {
      bytes[bytes.size() - from_end] ^= 1;
      return bytes;
    };
  };
  const std::vector<std::function<std::string(std::string)>> damages = {
      [](const std::string&) { return std::string(); },
      [](const std::string&) { return std::string("something else, long enough for a head"); },
      [](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); },
      [](const std::string& bytes) { return bytes.substr(0, bytes.size() - 1); },
      [](const std::string& bytes) { return bytes + "x"; },
      flip(1),    // the last tag
      flip(33),   // the value's bytes
      flip(100),  // the description or its tag
  };
  for (const auto& damage : damages) {
    TestDaemon daemon;
    Client client(daemon.address());
    client.Connect()->Call(Write(1, {1, 2, 3}));
    std::string kept;
    daemon.Restart(Daemon::Sessions::kKeep, [&] {
      const std::filesystem::path path = KeptFile(daemon);
      std::ifstream in(path, std::ios::binary);
      kept.assign(std::istreambuf_iterator<char>(in), {});
      std::ofstream(path, std::ios::binary) << damage(kept);
    });
    EXPECT_GT(kept.size(), 100);
    grpc::Status why;
    EXPECT_EQ(Reattach(daemon.address(), client, 0, &why), nullptr);
    EXPECT_EQ(Reason(why), "SESSION_LOST");
    EXPECT_TRUE(KeptFile(daemon).empty());
  }
}

TEST(Restart, ANewerDaemonsFileIsLeftAlone) {
  TestDaemon daemon;
  Client client(daemon.address());
  client.Connect()->Call(Write(1, {1}));
  daemon.Restart(Daemon::Sessions::kKeep, [&] {
    std::fstream file(KeptFile(daemon), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(8);
    file.put(99);
  });
  grpc::Status why;
  EXPECT_EQ(Reattach(daemon.address(), client, 0, &why), nullptr);
  EXPECT_EQ(Reason(why), "SESSION_LOST");
  EXPECT_FALSE(KeptFile(daemon).empty());
}

TEST(Restart, FilesAreTheUsersAlone) {
  TestDaemon daemon;
  Client client(daemon.address());
  client.Connect()->Call(Write(1, {1}));
  daemon.Restart(Daemon::Sessions::kKeep, [&] {
    using std::filesystem::perms;
    const auto path = KeptFile(daemon);
    EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
    EXPECT_EQ(std::filesystem::status(path.parent_path()).permissions(), perms::owner_all);
  });
}

}  // namespace
}  // namespace kiln::testing
