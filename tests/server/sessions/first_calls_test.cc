// The report on a program's first call: during the call, for clients that wait, and afterwards.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FirstCallsTest : public ::testing::Test {
 protected:
  TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.compile = [this](const auto& graph, const auto& target, const auto& compile_options) {
      // Only for the test's graph, not for the daemon's own programs.
      if (graph.inputs[0].shape == ir::Shape{kFloats}) {
        compile_options.on_kernels(3, 0);
        compile_options.on_kernels(0, 1);
        compiling_.Notify();
        let_go_.WaitForNotification();
      }
      return FakeCompile(graph, target, compile_options);
    };
    return options;
  }
  // Returns each first call as "session part kernels_made/kernels", or the call's error.
  static std::vector<std::string> FirstCalls(const Client& caller, const std::string& session_id) {
    grpc::ClientContext context;
    v1::ListFirstCallsRequest request;
    request.set_session_id(session_id);
    v1::ListFirstCallsResponse response;
    const grpc::Status status = caller.programs->ListFirstCalls(&context, request, &response);
    if (!status.ok()) return {absl::StrCat("error ", status.error_code())};
    std::vector<std::string> calls;
    for (const v1::FirstCall& call : response.first_calls()) {
      calls.push_back(absl::StrCat(call.session(), " ", call.part(), " ", call.kernels_made(), "/",
                                   call.kernels()));
    }
    return calls;
  }
  static std::vector<std::string> PartsOf(const Client& caller, const std::string& digest) {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse explained;
    EXPECT_TRUE(caller.programs->ExplainProgram(&context, request, &explained).ok());
    std::vector<std::string> parts;
    for (const v1::FirstCallPart& part : explained.first_call()) parts.push_back(part.name());
    return parts;
  }

  static constexpr int64_t kFloats = 2;
  absl::Notification compiling_, let_go_;
};

TEST_F(FirstCallsTest, AreToldWhileTheyGoOnToWhoeverMayKnow) {
  TestDaemon daemon(Options());
  Client owner(daemon.address());
  const std::string tcp = daemon.daemon().listening()[1];
  Client ann(tcp, {.token = AddUser(owner, "ann")}), bob(tcp, {.token = AddUser(owner, "bob")});
  const std::string& id = ann.session.session_id();
  const std::string name = ann.session.name();
  const auto stream = ann.Connect();
  const auto defined = stream->Send(Define(1, AddGraph(kFloats)));
  compiling_.WaitForNotification();
  EXPECT_THAT(FirstCalls(ann, id), ElementsAre(name + " compile 1/3"));
  EXPECT_THAT(FirstCalls(ann, ""), ElementsAre(name + " compile 1/3"));
  EXPECT_THAT(FirstCalls(owner, ""), ElementsAre(name + " compile 1/3"));
  EXPECT_THAT(FirstCalls(bob, ""), IsEmpty());
  EXPECT_THAT(FirstCalls(bob, bob.session.session_id()), IsEmpty());
  EXPECT_THAT(FirstCalls(bob, id), ElementsAre(absl::StrCat("error ", grpc::NOT_FOUND)));

  let_go_.Notify();
  const std::string digest = stream->Answer(defined).digest();
  EXPECT_THAT(FirstCalls(ann, id), IsEmpty()) << "it is ready, and nobody runs it";
  EXPECT_THAT(PartsOf(owner, digest), IsEmpty()) << "it has not been answered";

  daemon.device().Hold();
  stream->Call(Write(1, {1, 2}));
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  EXPECT_TRUE(Eventually(
      [&] { return FirstCalls(ann, id) == std::vector<std::string>{name + " run 1/3"}; }));
  daemon.device().LetGo();
  EXPECT_FALSE(stream->Answer(run).has_error());
  EXPECT_TRUE(Eventually([&] { return FirstCalls(ann, id).empty(); }));
  EXPECT_THAT(PartsOf(owner, digest), Contains("wait_for_session"));
  EXPECT_EQ(PartsOf(owner, digest).back(), "answer");
  // It would reveal whether another user had compiled it before.
  EXPECT_THAT(PartsOf(ann, digest), IsEmpty());
}

// Every client that requests a program that is being compiled gets the same report.
TEST_F(FirstCallsTest, AreThoseOfAllWhoWait) {
  TestDaemon daemon(Options());
  Client first(daemon.address()), second(daemon.address());
  const auto stream = first.Connect(), other = second.Connect();
  stream->Send(Define(1, AddGraph(kFloats)));
  compiling_.WaitForNotification();
  other->Send(Define(1, AddGraph(kFloats)));
  EXPECT_TRUE(Eventually([&] {
    return FirstCalls(second, second.session.session_id()) ==
           std::vector<std::string>{second.session.name() + " compile 1/3"};
  }));
  let_go_.Notify();  // the daemon waits for it when it stops
}

}  // namespace
}  // namespace kiln::testing
