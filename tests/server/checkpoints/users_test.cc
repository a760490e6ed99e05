// Several users whose sessions survive a kill: none of them is affected by another. A daemon in
// this process cannot be killed; instead the next one gets a copy of the files that it has on disk
// at that moment.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint32_t kHour = 3600;

class SnapshotUsersTest : public ::testing::Test {
 protected:
  static TestDaemonOptions Options(SnapshotUsersTest* self) {
    TestDaemonOptions options;
    options.memory_bytes = 64 << 20;
    options.blob_limit_bytes = 64 << 20;
    options.configure = [](config::Config& config) { config.saved_sessions_limit_bytes = 8 << 20; };
    options.prepare = [self](FakeDevice& device) {
      if (self->holds_) device.Hold();
    };
    return options;
  }
  std::string AddUser(const std::string& name) {
    grpc::ClientContext context;
    v1::AddUserRequest request;
    request.set_name(name);
    v1::AddUserResponse response;
    EXPECT_TRUE(owner_.admin->AddUser(&context, request, &response).ok());
    return response.token();
  }
  std::string tcp() { return daemon_.daemon().listening()[1]; }
  // Acts as if this daemon were killed now.
  void KillAndStart() {
    const fs::path state = daemon_.folder() + "/state", copy = daemon_.folder() + "/copy";
    fs::copy(state, copy, fs::copy_options::recursive);
    daemon_.Restart(Daemon::Sessions::kEnd, [&] {
      fs::remove_all(state);
      fs::rename(copy, state);
    });
  }
  std::vector<fs::path> Files(const std::string& extension) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(daemon_.folder() + "/state/sessions"))
      if (entry.path().extension() == extension) files.push_back(entry.path());
    return files;
  }
  bool IsProtected(const Client& client) {
    const v1::ListSessionsResponse all = Sessions(daemon_.address());
    for (const v1::Session& session : all.sessions())
      if (session.name() == client.session.name()) return session.has_snapshot_taken();
    return false;
  }

  bool holds_ = false;
  TestDaemon daemon_{Options(this)};
  Client owner_{daemon_.address()};
  const std::string ann_token_ = AddUser("ann"), bob_token_ = AddUser("bob");
};

TEST_F(SnapshotUsersTest, NobodyWaitsForAnothersJournal) {
  Client ann(tcp(), {.token = ann_token_}, 0, kHour), bob(tcp(), {.token = bob_token_}, 0, kHour);
  auto stream = ann.Connect(), bobs = bob.Connect();
  EXPECT_FALSE(stream->Call(Define(1, AccumulateGraph(1))).has_error());
  EXPECT_FALSE(stream->Call(Write(1, {0})).has_error());
  EXPECT_FALSE(stream->Call(Write(2, {5})).has_error());
  EXPECT_FALSE(stream->Call(RunProgram(1, {1, 2}, {3})).has_error());
  EXPECT_FALSE(bobs->Call(Write(1, {7})).has_error());
  stream.reset();
  bobs.reset();
  holds_ = true;
  KillAndStart();
  // Her run is repeated and does not complete; his session is restored after hers.
  bobs = Reattach(tcp(), bob, 1);
  ASSERT_NE(bobs, nullptr);
  EXPECT_THAT(Floats(bobs->Call(Read(1)).data()), ElementsAre(7));
  const auto sessions =
      v1::SessionService::NewStub(grpc::CreateChannel(tcp(), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Sessions(daemon_.address()).sessions_size(), 2);  // bob's, and that of the caller
  daemon_.device().LetGo();
  stream = Reattach(tcp(), ann, 4);
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(5));
}

TEST_F(SnapshotUsersTest, NobodyTakesAllOfTheDisk) {
  Client ann(tcp(), {.token = ann_token_}, 0, kHour);
  auto stream = ann.Connect();
  const std::vector<float> floats(100'000, 1);
  for (uint64_t handle = 1; handle <= 30; ++handle)  // 12 MB, of 8
    EXPECT_FALSE(stream->Call(Write(handle, floats)).has_error());
  EXPECT_FALSE(IsProtected(ann));
  Client again(tcp(), {.token = ann_token_}, 0, kHour);
  auto second = again.Connect();
  for (uint64_t handle = 1; handle <= 8; ++handle)  // less than half
    EXPECT_FALSE(second->Call(Write(handle, floats)).has_error());
  EXPECT_TRUE(IsProtected(again));
  Client bob(tcp(), {.token = bob_token_}, 0, kHour);
  auto bobs = bob.Connect();
  for (uint64_t handle = 1; handle <= 3; ++handle)
    EXPECT_FALSE(bobs->Call(Write(handle, floats)).has_error());
  EXPECT_TRUE(IsProtected(bob));
}

TEST_F(SnapshotUsersTest, FilesGoWithTheirUserAndWithTheLease) {
  Client ann(tcp(), {.token = ann_token_}, 0, kHour), bob(tcp(), {.token = bob_token_}, 10, kHour);
  auto stream = ann.Connect();
  EXPECT_FALSE(stream->Call(Write(1, {0})).has_error());
  EXPECT_THAT(Files(".session"), SizeIs(2));
  grpc::ClientContext context;
  v1::RevokeUserRequest revoke;
  revoke.set_name("ann");
  v1::RevokeUserResponse response;
  ASSERT_TRUE(owner_.admin->RevokeUser(&context, revoke, &response).ok());
  EXPECT_THAT(Files(".session"), SizeIs(1));
  EXPECT_THAT(Files(".journal"), SizeIs(1));
  daemon_.Advance(absl::Seconds(11));
  EXPECT_TRUE(Eventually([&] { return Files(".session").empty() && Files(".journal").empty(); }));
}

}  // namespace
}  // namespace kiln::testing
