// Sessions that are detached under a name and taken over by another process.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<Stream> Connect(Client& client, const v1::AttachSessionResponse& session) {
  auto stream = std::make_unique<Stream>(*client.sessions, session.session().session_id(),
                                         session.last_sequence());
  stream->set_next_sequence(session.last_sequence() + 1);
  return stream;
}

TEST(Detach, QueuedWorkGoesOnAndAnotherTakesItUp) {
  TestDaemon daemon;
  Client first(daemon.address());
  auto stream = first.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  for (uint64_t i = 0; i < 20; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
  const auto detached = stream->Send(Detach("night", 600, {{"count", 1}, {"step", 29}}));
  EXPECT_FALSE(stream->Answer(detached).has_error());
  stream->Drop();
  daemon.device().LetGo();

  Client second(daemon.address());
  const Taken taken = TakeOver(*second.sessions, "night");
  ASSERT_TRUE(taken.status.ok()) << taken.status.error_message();
  EXPECT_EQ(taken.session.last_sequence(), detached);
  EXPECT_EQ(taken.session.last_handle(), 29);
  EXPECT_EQ(taken.session.last_program(), 1);
  ASSERT_EQ(taken.session.tensors_size(), 2);
  EXPECT_EQ(taken.session.tensors(0).name(), "count");
  EXPECT_EQ(taken.session.tensors(0).dtype(), v1::DTYPE_FLOAT32);
  EXPECT_THAT(taken.session.tensors(0).shape(), ElementsAre(1));
  auto goes_on = Connect(second, taken.session);
  EXPECT_THAT(Floats(goes_on->Call(Read(1)).data()), ElementsAre(20));
  EXPECT_THAT(Floats(goes_on->Call(Read(29)).data()), ElementsAre(20));
  // Tensors without a name and programs are gone; numbers must not be reused.
  EXPECT_EQ(Reason(goes_on->Call(Read(2)).error()), "UNKNOWN_HANDLE");
  EXPECT_EQ(Reason(goes_on->Call(RunProgram(1, {1, 1}, {30})).error()), "UNKNOWN_PROGRAM");
  EXPECT_EQ(Reason(goes_on->Call(Write(10, {1})).error()), "HANDLE_REUSED");
  EXPECT_FALSE(goes_on->Call(Write(31, {1})).has_error());
  // The first client has lost the session, no matter what it tries.
  EXPECT_EQ(Reason(first.Connect()->End()), "TAKEN_OVER");
}

TEST(Detach, WhoeverStillHasItHearsThatItIsTakenOver) {
  TestDaemon daemon;
  Client first(daemon.address());
  auto stream = first.Connect();
  stream->Call(Write(1, {1}));
  stream->Call(Detach("mine", 600, {{"x", 1}}));
  Client second(daemon.address());
  const Taken taken = TakeOver(*second.sessions, "mine");
  EXPECT_EQ(Reason(stream->End()), "TAKEN_OVER");
  // If the answer is lost on its way, the same process or a third one asks again.
  const Taken again = TakeOver(*second.sessions, "mine");
  ASSERT_TRUE(again.status.ok());
  EXPECT_NE(taken.session.session().session_id(), again.session.session().session_id());
  EXPECT_EQ(Reason(Connect(second, taken.session)->End()), "TAKEN_OVER");
  EXPECT_THAT(Floats(Connect(second, again.session)->Call(Read(1)).data()), ElementsAre(1));
}

TEST(Detach, NamesAreCheckedAndWhatFailsChangesNothing) {
  TestDaemon daemon;
  Client client(daemon.address()), other(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {1}));
  stream->Call(Write(2, {2}));
  other.Connect()->Call(Detach("taken", 600, {}));
  Names many;
  for (int i = 0; i <= 4096; ++i) many.push_back({absl::StrCat("t", i), 1});
  const std::vector<std::pair<v1::ConnectRequest, std::string>> cases = {
      {Detach("", 1, {}), "BAD_NAME"},
      {Detach("../etc", 1, {}), "BAD_NAME"},
      {Detach("a\nlevel=error", 1, {}), "BAD_NAME"},
      {Detach(std::string(65, 'a'), 1, {}), "BAD_NAME"},
      {Detach("mine", 1, {{"a tensor", 1}}), "BAD_NAME"},
      {Detach("mine", 1, {{"x", 1}, {"x", 2}}), "BAD_NAME"},
      {Detach("mine", 1, {{"x", 7}}), "UNKNOWN_HANDLE"},
      {Detach("mine", 1, many), "TOO_MANY_NAMES"},
      {Detach("taken", 1, {{"x", 1}}), "NAME_TAKEN"},
  };
  for (const auto& [request, reason] : cases)
    EXPECT_EQ(Reason(stream->Call(request).error()), reason) << request.detach().name();
  EXPECT_THAT(Floats(stream->Call(Read(2)).data()), ElementsAre(2));
  many.pop_back();
  EXPECT_FALSE(stream->Call(Detach("mine", 600, many)).has_error());
  // A new name replaces the previous one, which other sessions may use then.
  EXPECT_FALSE(stream->Call(Detach("hers", 600, {{"x", 1}})).has_error());
  EXPECT_EQ(Reason(TakeOver(*other.sessions, "mine").status), "UNKNOWN_NAME");
  EXPECT_TRUE(TakeOver(*other.sessions, "hers").status.ok());
}

TEST(Detach, NamesAreTheUsersOwn) {
  TestDaemon daemon;
  Client admin(daemon.address());
  Client ann(daemon.address(), Client::Login{.token = AddUser(admin, "ann")});
  Client bob(daemon.address(), Client::Login{.token = AddUser(admin, "bob")});
  auto anns = ann.Connect();
  anns->Call(Write(1, {1}));
  anns->Call(Detach("run", 600, {{"x", 1}}));
  EXPECT_EQ(Reason(TakeOver(*bob.sessions, "run").status), "UNKNOWN_NAME");
  EXPECT_EQ(Reason(TakeOver(*admin.sessions, "run").status), "UNKNOWN_NAME");
  auto bobs = bob.Connect();
  EXPECT_FALSE(bobs->Call(Detach("run", 600, {})).has_error());
  EXPECT_EQ(TakeOver(*bob.sessions, "run").session.tensors_size(), 0);
  EXPECT_EQ(TakeOver(*ann.sessions, "run").session.tensors_size(), 1);
}

TEST(Detach, KeptForItsTimeAndNoLonger) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/10);
  auto stream = client.Connect();
  stream->Call(Write(1, {1}));
  stream->Call(Detach("night", 600, {{"x", 1}}));
  stream->Drop();
  Client other(daemon.address(), /*lease_seconds=*/3600);
  const auto is_connected = [&] {
    grpc::ClientContext context;
    v1::ListSessionsResponse sessions;
    other.sessions->ListSessions(&context, {}, &sessions);
    for (const auto& session : sessions.sessions())
      if (session.detached_name() == "night") return session.connected();
    return false;
  };
  ASSERT_TRUE(Eventually([&] { return !is_connected(); }));
  daemon.Advance(absl::Seconds(590));
  auto taken = TakeOver(*other.sessions, "night");
  ASSERT_TRUE(taken.status.ok()) << taken.status.error_message();
  // If the new holder dies, the session is kept for the same time again.
  Connect(other, taken.session)->Call(Read(1));
  ASSERT_TRUE(Eventually([&] { return !is_connected(); }));
  daemon.Advance(absl::Seconds(590));
  EXPECT_TRUE(TakeOver(*other.sessions, "night").status.ok());
  daemon.Advance(absl::Seconds(601));
  EXPECT_EQ(Reason(TakeOver(*other.sessions, "night").status), "UNKNOWN_NAME");
}

TEST(Detach, NoLongerThanTheDaemonsLimit) {
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.detach_hours_limit = 1; };
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Detach("long", 1'000'000'000, {}));
  grpc::ClientContext context;
  v1::ListSessionsResponse sessions;
  client.sessions->ListSessions(&context, {}, &sessions);
  EXPECT_EQ(sessions.sessions(0).expires().seconds(), 1'000'000 + 3600);
}

TEST(Detach, OutlivesTheDaemon) {
  TestDaemon daemon;
  {
    Client client(daemon.address());
    auto stream = client.Connect();
    DefineCounter(*stream);
    daemon.device().Hold();
    for (uint64_t i = 0; i < 10; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
    stream->Call(Detach("night", 600, {{"count", 1}}));
    stream->Drop();
  }
  daemon.Restart(
      Daemon::Sessions::kKeep, [&] { daemon.device().LetGo(); }, absl::ZeroDuration());
  Client second(daemon.address());
  Taken taken = TakeOver(*second.sessions, "night");
  ASSERT_TRUE(taken.status.ok()) << taken.status.error_message();
  EXPECT_EQ(taken.session.last_handle(), 19);
  EXPECT_THAT(Floats(Connect(second, taken.session)->Call(Read(1)).data()), ElementsAre(10));
  // It has a new id, which survives a restart.
  daemon.Restart();
  auto stream = std::make_unique<Stream>(v1::SessionService::NewStub(grpc::CreateChannel(
                                             daemon.address(), grpc::InsecureChannelCredentials())),
                                         taken.session.session().session_id(), 0);
  const grpc::Status why = stream->attached() ? grpc::Status() : stream->End();
  EXPECT_TRUE(stream->attached() || Reason(why) == "RESTARTING") << why.error_message();
  Client third(daemon.address());
  EXPECT_TRUE(TakeOver(*third.sessions, "night").status.ok());
}

}  // namespace
}  // namespace kiln::testing
