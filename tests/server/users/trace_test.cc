// Traces: what is in them, for whom, and how they end.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/trace.grpc.pb.h"
#include "server/auth/accounts.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::IsSupersetOf;

// A trace that has begun, or was refused.
class TraceReader {
 public:
  explicit TraceReader(const Client& client, int64_t seconds = 0) {
    v1::TraceRequest request;
    if (seconds != 0) request.mutable_duration()->set_seconds(seconds);
    reader_ = v1::TraceService::NewStub(client.channel)->Trace(&context_, request);
    v1::TraceResponse first;
    has_begun_ = reader_->Read(&first);
    if (!has_begun_) return;
    EXPECT_TRUE(first.has_began());
    EXPECT_EQ(first.spans_size(), 0);
  }
  ~TraceReader() { context_.TryCancel(); }

  bool has_begun() const { return has_begun_; }
  // Reads until the trace ends.
  grpc::Status End() {
    v1::TraceResponse answer;
    while (reader_->Read(&answer)) {
      EXPECT_FALSE(answer.has_began());
      EXPECT_EQ(answer.dropped(), 0);
      for (v1::TraceSpan& span : *answer.mutable_spans()) spans_.push_back(std::move(span));
    }
    return reader_->Finish();
  }
  // "RUN add of ann on cpu:0".
  std::multiset<std::string> Spans() const {
    std::multiset<std::string> all;
    for (const v1::TraceSpan& span : spans_) {
      std::string text = v1::TraceSpan::Kind_Name(span.kind()) + " " + span.name();
      if (!span.user().empty()) text += " of " + span.user();
      if (!span.device().empty()) text += " on " + span.device();
      all.insert(std::move(text));
    }
    return all;
  }
  const std::vector<v1::TraceSpan>& spans() const { return spans_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::TraceResponse>> reader_;
  bool has_begun_ = false;
  std::vector<v1::TraceSpan> spans_;
};

class TraceTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSeconds = 5;

  std::string tcp() { return daemon_.daemon().listening()[1]; }
  void EndTraces() { daemon_.Advance(absl::Seconds(kSeconds)); }

  TestDaemon daemon_;
  Client owner_{daemon_.address()};
};

v1::ConnectRequest Named(v1::ConnectRequest define, const std::string& name) {
  define.mutable_define_program()->set_name(name);
  return define;
}

// Defines and runs a program of this name, and reads its result.
void Work(const Client& client, const std::string& name) {
  Stream stream(*client.sessions, client.session.session_id());
  ASSERT_TRUE(stream.attached());
  for (v1::ConnectRequest request : {Named(Define(1, AddGraph(2)), name), Write(1, {1, 2}),
                                     Write(2, {3, 4}), RunProgram(1, {1, 2}, {3}), Read(3)}) {
    const v1::Result result = stream.Call(std::move(request));
    ASSERT_EQ(result.error().code(), 0) << result.error().message();
  }
}

TEST_F(TraceTest, ShowsAProgramFromItsArrivalToItsResult) {
  TraceReader trace(owner_, kSeconds);
  ASSERT_TRUE(trace.has_begun());
  Work(owner_, "sum");
  Sessions(daemon_.address());
  EndTraces();
  EXPECT_TRUE(trace.End().ok());
  const std::string me = *auth::AccountName(geteuid());
  EXPECT_THAT(trace.Spans(),
              IsSupersetOf({"OPERATION define_program of " + me, "OPERATION write of " + me,
                            "OPERATION run of " + me, "OPERATION read of " + me,
                            "COMPILE sum of " + me + " on cpu:0", "WAIT sum of " + me + " on cpu:0",
                            "RUN sum of " + me + " on cpu:0", "COMMAND add of " + me + " on cpu:0",
                            "COPY from device of " + me + " on cpu:0",
                            "CALL SessionService/ListSessions of " + me}));
  std::set<std::string> programs, operations, sessions;
  for (const v1::TraceSpan& span : trace.spans()) {
    if (span.kind() != v1::TraceSpan::RUN && span.kind() != v1::TraceSpan::COMMAND) continue;
    if (span.user().empty()) continue;  // the daemon's own runs
    programs.insert(span.program());
    operations.insert(span.detail());
    sessions.insert(span.session());
    EXPECT_NE(span.number(), 0);
  }
  EXPECT_EQ(programs.size(), 1);
  EXPECT_EQ(operations, std::set<std::string>{owner_.session.name() + "/4"});
  EXPECT_EQ(sessions, std::set<std::string>{owner_.session.name()});
}

TEST_F(TraceTest, UsersSeeTheirOwnWorkAndViewersAll) {
  Client ann(tcp(), {.token = AddUser(owner_, "ann")});
  Client bob(tcp(), {.token = AddUser(owner_, "bob")});
  Client vera(tcp(), {.token = AddUser(owner_, "vera", "viewer")});
  TraceReader anns(ann, kSeconds), veras(vera, kSeconds);
  ASSERT_TRUE(anns.has_begun() && veras.has_begun());
  Work(bob, "bobs_secret");
  Work(ann, "anns");
  EndTraces();
  EXPECT_TRUE(anns.End().ok());
  EXPECT_TRUE(veras.End().ok());
  EXPECT_THAT(veras.Spans(),
              IsSupersetOf({"RUN bobs_secret of bob on cpu:0", "OPERATION run of bob",
                            "RUN anns of ann on cpu:0", "COMPILE bobs_secret of bob on cpu:0"}));
  EXPECT_THAT(anns.Spans(), IsSupersetOf({"RUN anns of ann on cpu:0", "RUN other on cpu:0",
                                          "OPERATION run of ann"}));
  for (const v1::TraceSpan& span : anns.spans()) {
    if (span.user() == "ann") continue;
    EXPECT_EQ(span.user(), "") << span.DebugString();
    EXPECT_EQ(span.kind(), v1::TraceSpan::RUN) << span.DebugString();
    EXPECT_EQ(span.name(), "other");
    EXPECT_EQ(span.program() + span.session() + span.detail(), "");
  }
}

TEST_F(TraceTest, EndsWhenItsCallerIsRevoked) {
  Client ann(tcp(), {.token = AddUser(owner_, "ann")});
  TraceReader trace(ann);
  ASSERT_TRUE(trace.has_begun());
  v1::RevokeUserRequest request;
  request.set_name("ann");
  ASSERT_TRUE(Try(owner_.admin, &v1::AdminService::Stub::RevokeUser, request).ok());
  EXPECT_EQ(trace.End().error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(TraceTest, ABoundedNumberMayGoOn) {
  {
    TraceReader first(owner_), second(owner_);
    ASSERT_TRUE(first.has_begun() && second.has_begun());
    TraceReader third(owner_);
    EXPECT_FALSE(third.has_begun());
    const grpc::Status refused = third.End();
    EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Reason(refused), "TOO_MANY_TRACES");
  }
  // Traces end when their clients are gone.
  EXPECT_TRUE(Eventually([this] { return TraceReader(owner_).has_begun(); }));
}

TEST_F(TraceTest, LastsForAnHourAtMost) {
  for (const int64_t seconds : {int64_t{-1}, int64_t{3601}, int64_t{1} << 62}) {
    TraceReader trace(owner_, seconds);
    EXPECT_FALSE(trace.has_begun()) << seconds;
    const grpc::Status refused = trace.End();
    EXPECT_EQ(refused.error_code(), grpc::INVALID_ARGUMENT) << seconds;
    EXPECT_EQ(Reason(refused), "BAD_TRACE") << seconds;
  }
}

}  // namespace
}  // namespace kiln::testing
