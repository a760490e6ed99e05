// Sessions that are closed by their listed name: by their users, and by admins.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CloseByNameTest : public ::testing::Test {
 protected:
  std::string AddUser(const std::string& name, const std::string& role = "") {
    const std::string token = testing::AddUser(owner_, name, role);
    EXPECT_NE(token, "") << name;
    return token;
  }
  void AllowSessions(const std::string& user, uint64_t limit) {
    v1::SetQuotaRequest request;
    request.set_user(user);
    (*request.mutable_limits())["sessions"] = limit;
    EXPECT_TRUE(Try(owner_.admin, &v1::AdminService::Stub::SetQuota, request).ok());
  }
  static grpc::Status End(Client& client, const std::string& name) {
    v1::EndSessionRequest request;
    request.set_name(name);
    return Try(client.sessions, &v1::SessionService::Stub::EndSession, request);
  }
  bool IsAway(const std::string& name) {
    const v1::ListSessionsResponse list = Sessions(daemon_.address());
    for (const v1::Session& session : list.sessions())
      if (session.name() == name) return !session.connected();
    return false;
  }
  // Returns the number of tensors that the daemon counts as Ann's.
  uint64_t BuffersOfAnn() {
    grpc::ClientContext context;
    v1::ListQuotasResponse list;
    EXPECT_TRUE(ann_.admin->ListQuotas(&context, {}, &list).ok());
    for (const v1::ResourceQuota& quota : list.users(0).resources())
      if (quota.resource() == "buffers") return quota.used();
    return ~uint64_t{0};
  }
  grpc::Status Ask(Client& client) { return client.Connect()->End(); }
  std::string tcp() { return daemon_.daemon().listening()[1]; }

  TestDaemon daemon_;
  Client owner_{daemon_.address()};
  const std::string token_ = AddUser("ann");
  Client ann_{tcp(), {.token = token_}};
  const std::string name_ = ann_.session.name();
  Client bob_{tcp(), {.token = AddUser("bob")}};
};

TEST_F(CloseByNameTest, WhoseClientWasKilledIsNotLockedOut) {
  AllowSessions("ann", 1);
  auto stream = ann_.Connect();
  ASSERT_FALSE(stream->Call(Write(1, std::vector<float>(100))).has_error());
  EXPECT_THAT(Client(tcp(), {.token = token_}).opened.error_message(),
              Not(HasSubstr("disconnected")));
  EXPECT_EQ(BuffersOfAnn(), 1);
  stream->Drop();
  ASSERT_TRUE(Eventually([&] { return IsAway(name_); }));
  Client again(tcp(), {.token = token_});
  EXPECT_EQ(Reason(again.opened), "QUOTA_EXCEEDED");
  EXPECT_THAT(
      again.opened.error_message(),
      HasSubstr("whose client is disconnected; `kiln sessions close " + name_ + "` closes it"));
  ASSERT_TRUE(End(again, name_).ok());
  EXPECT_TRUE(Client(tcp(), {.token = token_}).opened.ok());
  EXPECT_TRUE(Eventually([&] { return BuffersOfAnn() == 0; }));
  // The session's client was still there; it learns that the session was closed.
  const grpc::Status why = Ask(ann_);
  EXPECT_EQ(why.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Reason(why), "SESSION_CLOSED");
  EXPECT_THAT(why.error_message(), HasSubstr("session " + name_ + " was closed by its user"));
  EXPECT_THAT(AuditText(daemon_),
              HasSubstr("\"user\":\"ann\",\"action\":\"close_session\",\"subject\":\"" + name_ +
                        " of ann\",\"outcome\":\"ok\""));
  EXPECT_EQ(Reason(End(again, name_)), "UNKNOWN_NAME");
}

TEST_F(CloseByNameTest, AnAdminEndsAnybodys) {
  auto stream = ann_.Connect();
  daemon_.device().Hold();
  stream->Call(Define(1, AddGraph(2)));
  stream->Call(Write(1, {1, 2}));
  stream->Send(RunProgram(1, {1, 1}, {2}));
  Client admin(tcp(), {.token = AddUser("root", "admin")});
  ASSERT_TRUE(End(admin, name_).ok());
  daemon_.device().LetGo();
  const grpc::Status ended = stream->End();
  EXPECT_EQ(Reason(ended), "SESSION_CLOSED");
  EXPECT_THAT(ended.error_message(), HasSubstr("closed by an admin"));
  EXPECT_THAT(AuditText(daemon_),
              HasSubstr("\"user\":\"root\",\"action\":\"close_session\",\"subject\":\"" + name_ +
                        " of ann\",\"outcome\":\"ok\""));
  EXPECT_EQ(Reason(End(admin, name_)), "UNKNOWN_NAME");
}

TEST_F(CloseByNameTest, NobodyElseMayOrHearsThatThereIsOne) {
  auto stream = ann_.Connect();
  const grpc::Status others = End(bob_, name_);
  const grpc::Status nobodys = End(bob_, "s999");
  EXPECT_EQ(Reason(others), "UNKNOWN_NAME");
  const auto without = [](std::string text, const std::string& name) {
    return text.replace(text.find(name), name.size(), "NAME");
  };
  EXPECT_EQ(without(others.error_message(), name_), without(nobodys.error_message(), "s999"));
  Client viewer(tcp(), {.token = AddUser("eve", "viewer")});
  EXPECT_EQ(End(viewer, name_).error_code(), grpc::PERMISSION_DENIED);
  for (const std::string& name :
       std::vector<std::string>{"", "s", "0" + name_, "s0" + name_.substr(1), name_ + " "})
    EXPECT_EQ(Reason(End(ann_, name)), "UNKNOWN_NAME") << name;
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
}

TEST_F(CloseByNameTest, ANameThatTwoHaveEndsNeither) {
  Client second(tcp(), {.token = token_});
  auto left = second.Connect();
  ASSERT_FALSE(left->Call(Detach(name_, 600, {})).has_error());
  auto stream = ann_.Connect();
  const grpc::Status status = End(ann_, name_);
  EXPECT_EQ(Reason(status), "AMBIGUOUS_NAME");
  EXPECT_THAT(status.error_message(), HasSubstr("kiln sessions close " + second.session.name()));
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
  ASSERT_TRUE(End(ann_, second.session.name()).ok());
  EXPECT_EQ(Reason(left->End()), "SESSION_CLOSED");
  EXPECT_FALSE(stream->Call(Write(2, {1})).has_error());
  EXPECT_TRUE(End(ann_, name_).ok());
}

TEST_F(CloseByNameTest, AProtectedOneDoesNotComeBack) {
  Client kept(tcp(), {.token = token_}, /*lease_seconds=*/0, /*snapshot_seconds=*/60);
  ASSERT_TRUE(kept.opened.ok()) << kept.opened.error_message();
  ASSERT_FALSE(kept.Connect()->Call(Write(1, {1})).has_error());
  const auto files = [&] {
    int files = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(daemon_.folder() + "/state/sessions"))
      if (file.path().extension() == ".session" || file.path().extension() == ".journal") ++files;
    return files;
  };
  ASSERT_GT(files(), 0);
  ASSERT_TRUE(End(ann_, kept.session.name()).ok());
  EXPECT_TRUE(Eventually([&] { return files() == 0; }));
  daemon_.Restart();
  EXPECT_EQ(Reattach(tcp(), kept), nullptr);
}

// A user who closes sessions repeatedly does not push other events out of the log.
TEST_F(CloseByNameTest, UsersCannotFillTheAuditLog) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Reason(End(ann_, "night")), "UNKNOWN_NAME");
  const std::string text = AuditText(daemon_);
  int events = 0;
  for (size_t at = 0; (at = text.find("close_session", at)) != std::string::npos; ++at) ++events;
  EXPECT_EQ(events, 30);
}

}  // namespace
}  // namespace kiln::testing
