// Define, run, read; the order of operations; several sessions; leases.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SessionStream, DefineRunRead) {
  TestDaemon daemon;
  Client client(daemon.address());
  ASSERT_TRUE(client.opened.ok()) << client.opened.error_message();
  EXPECT_EQ(client.session.name(), "s1");
  EXPECT_EQ(client.session.device(), "cpu:0");
  EXPECT_EQ(client.session.session_id().size(), 40);
  EXPECT_EQ(client.session.lease_seconds(), 900);
  auto stream = client.Connect();
  // All in flight at once: nothing waits for an answer.
  const auto defined = stream->Send(Define(1, AddGraph(3)));
  stream->Send(Write(1, {1, 2, 3}));
  stream->Send(Write(2, {10, 20, 30}));
  v1::ConnectRequest timed = RunProgram(1, {1, 2}, {3});
  timed.mutable_run()->set_report_time(true);
  const auto ran = stream->Send(timed);
  stream->Send(RunProgram(1, {3, 3}, {4}));
  const auto read = stream->Send(Read(4));
  EXPECT_THAT(Floats(stream->Answer(read).data()), ElementsAre(22, 44, 66));
  EXPECT_EQ(stream->Answer(defined).digest().size(), 64);
  EXPECT_GT(stream->Answer(ran).device_seconds(), 0);
}

TEST(SessionStream, ManyOperationsTravelTogether) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  std::vector<v1::ConnectRequest> requests = {Define(1, AccumulateGraph(1)), Write(1, {0}),
                                              Write(2, {1}), Read(3)};
  for (uint64_t i = 0; i < 250; ++i) requests.push_back(RunProgram(1, {1, 2}, {100 + i}));
  requests.push_back(Read(1));
  const uint64_t read = stream->SendTogether(requests);
  EXPECT_EQ(read, 255);
  EXPECT_THAT(Floats(stream->Answer(read).data()), ElementsAre(250));
  EXPECT_EQ(stream->Answer(4).error().code(), grpc::NOT_FOUND);
  stream->Call(Barrier());
  for (uint64_t sequence = 1; sequence <= read; ++sequence)
    EXPECT_EQ(stream->received().at(sequence), 1) << sequence;
}

TEST(SessionStream, AnswersTravelTogetherToWhoTakesThem) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  for (int i = 0; i < 20; ++i)
    stream->SendTogether(std::vector<v1::ConnectRequest>(200, Release({7})));
  EXPECT_FALSE(stream->Call(Barrier()).has_error());
  EXPECT_EQ(stream->answers().size(), 4001);
  EXPECT_LT(stream->messages(), 4001);
}

TEST(SessionStream, AnswersTravelAloneToWhoDoesNotSay) {
  TestDaemon daemon;
  Client client(daemon.address());
  grpc::ClientContext context;
  auto stream = client.sessions->Connect(&context);
  v1::ConnectRequest request = AttachTo(client.session.session_id());
  stream->Write(request);
  for (uint64_t i = 1; i <= 1000; ++i) {
    request = Release({7});
    request.set_sequence(i);
    stream->Write(request);
  }
  stream->WritesDone();
  v1::ConnectResponse response;
  int messages = 0;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.more_size(), 0);
    ++messages;
  }
  EXPECT_EQ(messages, 1001);
}

TEST(SessionStream, WhatTravelsTogetherIsBoundedAndFlat) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->SendTogether(std::vector<v1::ConnectRequest>(257, Barrier()));
  grpc::Status end = stream->End();
  EXPECT_EQ(Reason(end), "TOO_MANY_OPERATIONS") << end.error_message();
  stream = client.Connect();
  EXPECT_EQ(stream->last_sequence(), 0) << "nothing of it was taken";
  v1::ConnectRequest nested = Barrier();
  *nested.add_more() = Barrier();
  stream->SendTogether({Barrier(), nested});
  end = stream->End();
  EXPECT_EQ(Reason(end), "NESTED_OPERATIONS") << end.error_message();
  // Empty operations take 2 bytes each, and about 90 once they are parsed.
  stream = client.Connect();
  stream->SendTogether(std::vector<v1::ConnectRequest>(1 << 20));
  end = stream->End();
  EXPECT_EQ(Reason(end), "TOO_MANY_OPERATIONS") << end.error_message();
}

TEST(SessionStream, AttachTravelsAlone) {
  TestDaemon daemon;
  Client client(daemon.address());
  grpc::ClientContext context;
  auto stream = client.sessions->Connect(&context);
  v1::ConnectRequest attach = AttachTo(client.session.session_id());
  *attach.add_more() = Barrier();
  stream->Write(attach);
  v1::ConnectResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(Reason(stream->Finish()), "NOT_ATTACHED");
}

TEST(SessionStream, UpdatesReplaceTheInput) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Send(Define(1, AccumulateGraph(1)));
  stream->Send(Write(1, {0}));
  stream->Send(Write(2, {1}));
  for (uint64_t step = 0; step < 10; ++step) stream->Send(RunProgram(1, {1, 2}, {100 + step}));
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(10));
  // Results of earlier steps are not overwritten.
  EXPECT_THAT(Floats(stream->Call(Read(100)).data()), ElementsAre(1));
  EXPECT_THAT(Floats(stream->Call(Read(105)).data()), ElementsAre(6));
}

TEST(SessionStream, VariablesAreBoundByEachRun) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Define(1, VariableAddGraph(8))).digest().empty());
  stream->Send(Write(1, {1, 2}));
  stream->Send(Write(2, {1, 2, 3}));
  for (const uint64_t handle : {1, 2}) {
    v1::ConnectRequest run = RunProgram(1, {handle, handle}, {handle + 10});
    (*run.mutable_run()->mutable_bindings())["n"] = handle == 1 ? 2 : 3;
    stream->Send(run);
  }
  EXPECT_THAT(Floats(stream->Call(Read(11)).data()), ElementsAre(2, 4));
  EXPECT_THAT(Floats(stream->Call(Read(12)).data()), ElementsAre(2, 4, 6));
  // The same memory with a smaller length: the rest of it is not part of the value.
  v1::ConnectRequest again = RunProgram(1, {11, 1}, {13});
  (*again.mutable_run()->mutable_bindings())["n"] = 2;
  stream->Send(again);
  EXPECT_THAT(Floats(stream->Call(Read(13)).data()), ElementsAre(3, 6));
  v1::ConnectRequest out_of_bounds = RunProgram(1, {1, 1}, {20});
  (*out_of_bounds.mutable_run()->mutable_bindings())["n"] = 9;
  EXPECT_THAT(stream->Call(out_of_bounds).error().message(),
              HasSubstr("variable \"n\" is bound to 9, which is not in [1, 8]"));
}

TEST(SessionStream, BarrierWaitsForWhatCameBefore) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, AddGraph(1)));
  stream->Send(Write(1, {1}));
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  const auto barrier = stream->Send(Barrier());
  const auto after = stream->Send(Write(3, {1}));
  stream->Answer(after);
  EXPECT_EQ(stream->received().count(barrier), 0);
  daemon.device().LetGo();
  EXPECT_FALSE(stream->Answer(barrier).has_error());
  EXPECT_EQ(stream->received().count(run), 1);
  EXPECT_FALSE(stream->Call(Barrier()).has_error());
}

// A small step that is read wakes its client only once.
TEST(SessionStream, ARunsEndAndItsResultShareAMessage) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, AddGraph(1)));
  stream->Call(Write(1, {1}));
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  const auto read = stream->Send(Read(2));
  stream->Call(Write(3, {1}));  // both have been received
  const int before = stream->messages();
  daemon.device().LetGo();
  EXPECT_FALSE(stream->Answer(run).has_error());
  EXPECT_THAT(Floats(stream->Answer(read).data()), ElementsAre(2));
  EXPECT_EQ(stream->messages(), before + 1);
}

// Answers that are ready while a message is executed, in any order.
TEST(SessionStream, WhatCameTogetherIsAnsweredTogether) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, {1, 2}));
  const int before = stream->messages();
  const auto last = stream->SendTogether({Write(2, {3}), Read(1), Write(3, {4})});
  EXPECT_THAT(Floats(stream->Answer(last - 1).data()), ElementsAre(1, 2));
  for (const uint64_t sequence : {last - 2, last})
    EXPECT_FALSE(stream->Answer(sequence).has_error());
  EXPECT_EQ(stream->messages(), before + 1);
  // Each value needs its own message.
  stream->Answer(stream->SendTogether({Read(1), Read(2), Read(3)}));
  for (const uint64_t sequence : {last + 1, last + 2, last + 3})
    EXPECT_FALSE(stream->Answer(sequence).data().empty());
  EXPECT_EQ(stream->messages(), before + 4);
}

TEST(SessionStream, EqualGraphsOfTwoSessionsCompileOnce) {
  std::atomic<int> compiled{0};
  absl::Notification go;
  TestDaemonOptions options;
  options.compile = [&](const auto& graph, const auto& target, const auto& compile_options) {
    ++compiled;
    go.WaitForNotification();
    return FakeCompile(graph, target, compile_options);
  };
  TestDaemon daemon(std::move(options));
  Client first(daemon.address()), second(daemon.address());
  auto first_stream = first.Connect(), second_stream = second.Connect();
  const auto one = first_stream->Send(Define(1, AddGraph(2)));
  const auto two = second_stream->Send(Define(7, AddGraph(2)));
  // The same graph from another source line.
  v1::Graph elsewhere = AddGraph(2);
  elsewhere.mutable_nodes(2)->set_source("train.py:31");
  const auto three = second_stream->Send(Define(8, elsewhere));
  go.Notify();
  const std::string digest = first_stream->Answer(one).digest();
  EXPECT_EQ(second_stream->Answer(two).digest(), digest);
  EXPECT_EQ(second_stream->Answer(three).digest(), digest);
  EXPECT_EQ(compiled, 1);
}

TEST(SessionStream, CompilationHoldsUpNobodyElse) {
  absl::Notification go;
  TestDaemonOptions options;
  options.compile = [&](const auto& graph, const auto& target, const auto& compile_options) {
    if (graph.inputs[0].shape[0] == 5) go.WaitForNotification();
    return FakeCompile(graph, target, compile_options);
  };
  TestDaemon daemon(std::move(options));
  Client slow(daemon.address()), quick(daemon.address());
  auto slow_stream = slow.Connect(), quick_stream = quick.Connect();
  slow_stream->Send(Define(1, AddGraph(5)));
  slow_stream->Send(Write(1, {1, 2, 3, 4, 5}));
  slow_stream->Send(RunProgram(1, {1, 1}, {2}));
  const auto read = slow_stream->Send(Read(2));
  quick_stream->Send(Define(1, AddGraph(1)));
  quick_stream->Send(Write(1, {1}));
  quick_stream->Send(RunProgram(1, {1, 1}, {2}));
  EXPECT_THAT(Floats(quick_stream->Call(Read(2)).data()), ElementsAre(2));
  EXPECT_EQ(slow_stream->received().count(read), 0);
  go.Notify();
  EXPECT_THAT(Floats(slow_stream->Answer(read).data()), ElementsAre(2, 4, 6, 8, 10));
}

TEST(SessionStream, SessionsDoNotSeeEachOther) {
  TestDaemon daemon;
  Client first(daemon.address()), second(daemon.address());
  EXPECT_NE(first.session.session_id(), second.session.session_id());
  auto first_stream = first.Connect(), second_stream = second.Connect();
  first_stream->Call(Write(1, {1}));
  EXPECT_EQ(second_stream->Call(Read(1)).error().code(), grpc::NOT_FOUND);
  second_stream->Call(Write(1, {2}));
  EXPECT_THAT(Floats(first_stream->Call(Read(1)).data()), ElementsAre(1));
}

TEST(SessionStream, ReleaseFreesMemoryWhenTheRunIsOver) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, AddGraph(100)));
  stream->Call(Write(1, std::vector<float>(100)));
  daemon.device().Hold();
  stream->Send(RunProgram(1, {1, 1}, {2}));
  EXPECT_FALSE(stream->Call(Release({1, 2})).has_error());
  EXPECT_EQ(daemon.device().allocated_bytes(), 800);
  daemon.device().LetGo();
  EXPECT_FALSE(stream->Call(Barrier()).has_error());
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 0; }));
}

TEST(SessionStream, ClosedSessionFreesEverything) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(100)));
  grpc::ClientContext context;
  v1::CloseSessionRequest request;
  request.set_session_id(client.session.session_id());
  v1::CloseSessionResponse response;
  ASSERT_TRUE(client.sessions->CloseSession(&context, request, &response).ok());
  EXPECT_TRUE(stream->End().ok());
  // The thread that answered the write may hold its value for a moment longer.
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 0; }));
  grpc::ClientContext again;
  const grpc::Status status = client.sessions->CloseSession(&again, request, &response);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Reason(status), "UNKNOWN_SESSION");
}

TEST(SessionStream, LeaseExpiryFreesMemory) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/20);
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(100)));
  // A connected stream renews the lease.
  daemon.Advance(absl::Seconds(100));
  EXPECT_THAT(stream->Call(Read(1)).data(), ::testing::SizeIs(400));
  stream->Drop();
  ASSERT_TRUE(Eventually([&] {
    return daemon.daemon().MetricsText().find("kiln_connections 0") != std::string::npos;
  }));
  daemon.Advance(absl::Seconds(19));
  EXPECT_EQ(daemon.device().allocated_bytes(), 400);
  daemon.Advance(absl::Seconds(2));
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 0; }));
  auto late = client.Connect();
  EXPECT_EQ(late->End().error_code(), grpc::NOT_FOUND);
}

// As when the clock is set, or corrected after boot.
TEST(SessionStream, AStepOfTheWallClockEndsNoLease) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/20), other(daemon.address());
  const auto training = other.Connect();
  auto stream = client.Connect();
  stream->Call(Write(1, std::vector<float>(100)));
  stream->Drop();
  ASSERT_TRUE(Eventually([&] {
    return daemon.daemon().MetricsText().find("kiln_connections 1") != std::string::npos;
  }));
  const auto expires = [&] {
    grpc::ClientContext context;
    v1::ListSessionsResponse sessions;
    EXPECT_TRUE(other.sessions->ListSessions(&context, {}, &sessions).ok());
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const v1::Session& session : sessions.sessions())
      first = std::min(first, session.expires().seconds());
    return first;
  };
  const int64_t before = expires();
  daemon.StepWallClock(absl::Hours(100));
  EXPECT_EQ(expires(), before + 360'000) << "people read it by the wall clock";
  daemon.StepWallClock(-absl::Hours(300));
  daemon.Advance(absl::Seconds(19));
  EXPECT_EQ(daemon.device().allocated_bytes(), 400);
  EXPECT_FALSE(training->Call(Write(1, {1})).has_error());
  // The lease ends by the steady clock, although the wall clock is far before its end.
  daemon.Advance(absl::Seconds(2));
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 4; }));
}

TEST(SessionStream, RenewalKeepsASession) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/20);
  for (int i = 0; i < 3; ++i) {
    daemon.Advance(absl::Seconds(15));
    grpc::ClientContext context;
    v1::RenewSessionRequest request;
    request.set_session_id(client.session.session_id());
    v1::RenewSessionResponse response;
    ASSERT_TRUE(client.sessions->RenewSession(&context, request, &response).ok()) << i;
    EXPECT_EQ(response.expires().seconds(), 1'000'000 + 15 * (i + 1) + 20);
  }
}

TEST(SessionStream, HalfClosedStreamGetsItsAnswers) {
  TestDaemon daemon;
  Client client(daemon.address());
  grpc::ClientContext context;
  auto stream = client.sessions->Connect(&context);
  stream->Write(AttachTo(client.session.session_id()));
  uint64_t sequence = 0;
  for (v1::ConnectRequest request :
       {Define(1, AddGraph(1)), Write(1, {4}), RunProgram(1, {1, 1}, {2}), Read(2)}) {
    request.set_sequence(++sequence);
    stream->Write(request);
  }
  stream->WritesDone();
  std::string read;
  int answers = 0;
  v1::ConnectResponse response;
  while (stream->Read(&response)) {
    ++answers;
    if (response.result().sequence() == 4) read = response.result().data();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, 5);
  EXPECT_THAT(Floats(read), ElementsAre(8));
}

TEST(SessionStream, ManyOperationsInFlight) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Send(Define(1, AccumulateGraph(1)));
  stream->Send(Write(1, {0}));
  stream->Send(Write(2, {1}));
  // More than the daemon accepts at once: it stops reading until answers have been sent.
  daemon.device().Hold();
  constexpr uint64_t kRuns = 6000;
  for (uint64_t i = 0; i < kRuns; ++i) {
    stream->Send(RunProgram(1, {1, 2}, {10 + i}));
    if (i == 4000) daemon.device().LetGo();
  }
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(kRuns));
}

TEST(SessionStream, TwoSessionsShareTheDevice) {
  TestDaemonOptions options;
  options.devices = 2;
  TestDaemon daemon(std::move(options));
  Client first(daemon.address()), second(daemon.address()), chosen(daemon.address(), 0, "cpu:0");
  EXPECT_NE(first.session.device(), second.session.device());
  EXPECT_EQ(chosen.session.device(), "cpu:0");
  Client nowhere(daemon.address(), 0, "cuda:9");
  EXPECT_EQ(nowhere.opened.error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(nowhere.opened.error_message(), HasSubstr("available: cpu:0, cpu:1"));
}

}  // namespace
}  // namespace kiln::testing
