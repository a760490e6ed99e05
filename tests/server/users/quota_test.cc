// Limits of a user, as the user and an admin see them.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/error.pb.h"
#include "server/auth/accounts.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// The violation in an error's details; an empty one if there is none.
v1::QuotaFailure::Violation Violation(const v1::Status& status) {
  for (const auto& detail : status.details()) {
    v1::QuotaFailure failure;
    if (detail.type_url() == "type.googleapis.com/google.rpc.QuotaFailure" &&
        failure.ParseFromString(detail.value()) && failure.violations_size() == 1)
      return failure.violations(0);
  }
  return {};
}

v1::Status Details(const grpc::Status& status) {
  v1::Status details;
  details.ParseFromString(status.error_details());
  return details;
}

class QuotaTest : public ::testing::Test {
 protected:
  std::string AddUser(const std::string& name) {
    grpc::ClientContext context;
    v1::AddUserRequest request;
    request.set_name(name);
    v1::AddUserResponse response;
    EXPECT_TRUE(owner_.admin->AddUser(&context, request, &response).ok());
    return response.token();
  }
  grpc::Status Set(const std::string& user, const std::string& resource, uint64_t limit) {
    grpc::ClientContext context;
    v1::SetQuotaRequest request;
    request.set_user(user);
    (*request.mutable_limits())[resource] = limit;
    v1::SetQuotaResponse response;
    return owner_.admin->SetQuota(&context, request, &response);
  }
  static v1::ListQuotasResponse ListFor(Client& client) {
    grpc::ClientContext context;
    v1::ListQuotasResponse response;
    EXPECT_TRUE(client.admin->ListQuotas(&context, {}, &response).ok());
    return response;
  }
  // For device memory, returns the quota on the device with the most use.
  v1::ResourceQuota Quota(const std::string& user, const std::string& resource) {
    const v1::ListQuotasResponse list = ListFor(owner_);
    v1::ResourceQuota found;
    for (const v1::UserQuotas& quotas : list.users()) {
      if (quotas.user() != user) continue;
      for (const v1::ResourceQuota& quota : quotas.resources())
        if (quota.resource() == resource && quota.used() >= found.used()) found = quota;
    }
    return found;
  }
  std::string tcp() { return daemon_.daemon().listening()[1]; }
  // Advances ten minutes after the daemon began to wait for the next message. It may begin only
  // after the clock has moved, so the clock is moved in steps.
  void ExpectIdleUploadsEnd() {
    for (int i = 0; i < 7 && Quota("ann", "uploads").used() > 0; ++i)
      daemon_.Advance(absl::Minutes(2));
    EXPECT_EQ(Quota("ann", "uploads").used(), 0);
  }

  TestDaemon daemon_{TestDaemonOptions{.devices = 2}};
  Client owner_{daemon_.address()};
  const std::string ann_token_ = AddUser("ann");
  Client ann_{tcp(), {.token = ann_token_}};
  const std::string bob_token_ = AddUser("bob");
  Client bob_{tcp(), {.token = bob_token_}};
};

TEST_F(QuotaTest, DeviceMemorySaysWhatIsUsedByWhat) {
  ASSERT_TRUE(Set("ann", "device_memory", 1000).ok());
  auto stream = ann_.Connect();
  ASSERT_FALSE(stream->Call(Write(1, std::vector<float>(50))).has_error());
  ASSERT_FALSE(stream->Call(Write(2, std::vector<float>(150))).has_error());
  const v1::Result refused = stream->Call(Write(3, std::vector<float>(100)));
  EXPECT_EQ(refused.error().code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(refused.error()), "QUOTA_EXCEEDED");
  const auto violation = Violation(refused.error());
  EXPECT_EQ(violation.subject(), "user:ann");
  EXPECT_EQ(violation.quota_metric(), "device_memory");
  EXPECT_EQ(violation.quota_value(), 1000);
  EXPECT_THAT(violation.description(),
              HasSubstr("1000 bytes of device memory on cpu:1 and has 800 bytes"));
  EXPECT_THAT(violation.description(),
              ContainsRegex("handle 2 of s[0-9]+, float32.150.: 600 bytes; handle 1"));
  EXPECT_THAT(violation.description(), HasSubstr("release tensors"));
  // Dependent operations get the same error, and other users have room.
  EXPECT_EQ(Reason(stream->Call(Read(3)).error()), "QUOTA_EXCEEDED");
  auto others = bob_.Connect();
  EXPECT_FALSE(others->Call(Write(1, std::vector<float>(1000))).has_error());
  stream->Call(Release({2}));
  EXPECT_FALSE(stream->Call(Write(4, std::vector<float>(100))).has_error());
  EXPECT_EQ(Quota("ann", "device_memory").used(), 600);
  EXPECT_TRUE(Quota("ann", "device_memory").is_set());
}

TEST_F(QuotaTest, ResultsOfRunsCountBeforeTheyRun) {
  auto stream = ann_.Connect();
  ASSERT_FALSE(stream->Call(Define(1, AddGraph(50))).has_error());
  ASSERT_FALSE(stream->Call(Write(1, std::vector<float>(50))).has_error());
  ASSERT_TRUE(Set("ann", "device_memory", 500).ok());
  ASSERT_FALSE(stream->Call(RunProgram(1, {1, 1}, {2})).has_error());
  const v1::Result refused = stream->Call(RunProgram(1, {1, 1}, {3}));
  EXPECT_EQ(Violation(refused.error()).quota_metric(), "device_memory");
  EXPECT_EQ(daemon_.device(1).lists_run(), 1);
  stream->Call(Release({2}));
  EXPECT_FALSE(stream->Call(RunProgram(1, {1, 1}, {4})).has_error());
}

TEST_F(QuotaTest, EachDeviceHasItsOwn) {
  ASSERT_TRUE(Set("ann", "device_memory", 100).ok());
  Client beside(tcp(), {.token = ann_token_}), elsewhere(tcp(), {.token = ann_token_});
  ASSERT_TRUE(elsewhere.opened.ok());
  ASSERT_NE(elsewhere.session.device(), ann_.session.device());
  EXPECT_FALSE(ann_.Connect()->Call(Write(1, std::vector<float>(25))).has_error());
  auto stream = elsewhere.Connect();
  EXPECT_FALSE(stream->Call(Write(1, std::vector<float>(25))).has_error());
  EXPECT_TRUE(stream->Call(Write(2, std::vector<float>(1))).has_error());
}

TEST_F(QuotaTest, SessionsBuffersProgramsAndGraphs) {
  ASSERT_TRUE(Set("ann", "sessions", 1).ok());
  const grpc::Status session = Client(tcp(), {.token = ann_token_}).opened;
  EXPECT_EQ(session.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Violation(Details(session)).quota_metric(), "sessions");
  EXPECT_THAT(session.error_message(), HasSubstr(absl::StrCat("session ", ann_.session.name())));
  auto stream = ann_.Connect();
  ASSERT_TRUE(Set("ann", "buffers", 2).ok());
  ASSERT_FALSE(stream->Call(Write(1, {1})).has_error());
  ASSERT_FALSE(stream->Call(Write(2, {1})).has_error());
  EXPECT_EQ(Violation(stream->Call(Write(3, {1})).error()).quota_metric(), "buffers");
  ASSERT_TRUE(Set("ann", "programs", 1).ok());
  ASSERT_FALSE(stream->Call(Define(1, AddGraph(2))).has_error());
  const v1::Result program = stream->Call(Define(2, AddGraph(3)));
  EXPECT_EQ(Violation(program.error()).quota_metric(), "programs");
  EXPECT_EQ(Quota("ann", "programs").used(), 1);
  v1::ConnectRequest release;
  release.mutable_release_program()->set_program(1);
  ASSERT_FALSE(stream->Call(release).has_error());
  EXPECT_FALSE(stream->Call(Define(2, AddGraph(3))).has_error());
  ASSERT_TRUE(Set("ann", "programs", 0).ok());
  ASSERT_TRUE(Set("ann", "graph_nodes", 2).ok());
  EXPECT_EQ(Violation(stream->Call(Define(3, AddGraph(4))).error()).quota_metric(), "graph_nodes");
  grpc::ClientContext context;
  v1::CompileProgramRequest compile;
  compile.set_session_id(ann_.session.session_id());
  *compile.mutable_graph() = AddGraph(4);
  v1::CompileProgramResponse compiled;
  const grpc::Status refused = ann_.programs->CompileProgram(&context, compile, &compiled);
  EXPECT_EQ(Violation(Details(refused)).quota_metric(), "graph_nodes");
  // Closing the session releases everything.
  grpc::ClientContext close_context;
  v1::CloseSessionRequest close;
  close.set_session_id(ann_.session.session_id());
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(ann_.sessions->CloseSession(&close_context, close, &closed).ok());
  EXPECT_TRUE(Client(tcp(), {.token = ann_token_}).opened.ok());
  EXPECT_TRUE(Eventually(
      [&] { return Quota("ann", "programs").used() == 0 && Quota("ann", "buffers").used() == 0; }));
}

TEST_F(QuotaTest, HostMemory) {
  ASSERT_TRUE(ann_.Upload("kept", std::string(1000, 'x')).ok());
  const uint64_t used = Quota("ann", "host_memory").used();
  EXPECT_GE(used, 1000);
  ASSERT_TRUE(Set("ann", "host_memory", used + 10'000).ok());
  const grpc::Status refused = ann_.Upload("more", std::string(100'000, 'x'));
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Violation(Details(refused)).quota_metric(), "host_memory");
  EXPECT_TRUE(bob_.Upload("more", std::string(100'000, 'x')).ok());
}

// Above the limit nothing fails: further operations wait until earlier ones have been answered.
TEST_F(QuotaTest, OperationsAreSlowedDown) {
  ASSERT_TRUE(Set("ann", "operations", 4).ok());
  Client second(tcp(), {.token = ann_token_});
  auto stream = ann_.Connect();
  auto other = second.Connect();
  stream->Call(Define(1, AddGraph(1)));
  stream->Call(Write(1, {1}));
  FakeDevice& device = daemon_.device(ann_.session.device() == "cpu:0" ? 0 : 1);
  device.Hold();
  for (uint64_t i = 0; i < 20; ++i) stream->Send(RunProgram(1, {1, 1}, {10 + i}));
  EXPECT_TRUE(Eventually([&] { return Quota("ann", "operations").used() >= 4; }));
  // The user's other session continues, one operation at a time.
  for (uint64_t i = 1; i <= 8; ++i) EXPECT_FALSE(other->Call(Write(i, {1})).has_error());
  EXPECT_LE(Quota("ann", "operations").used(), 6);
  device.LetGo();
  for (uint64_t i = 3; i <= 22; ++i) EXPECT_FALSE(stream->Answer(i).has_error()) << i;
  EXPECT_TRUE(Eventually([&] { return Quota("ann", "operations").used() == 0; }));
}

// Announces an upload and sends no data.
struct Announced {
  Announced(Client& client, const std::string& blob, uint64_t size) {
    writer = client.blobs->Upload(&context, &response);
    v1::UploadRequest request;
    request.mutable_header()->set_session_id(client.session.session_id());
    request.mutable_header()->set_blob(blob);
    request.mutable_header()->set_size_bytes(size);
    writer->Write(request);
  }
  grpc::ClientContext context;
  v1::UploadResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer;
};

TEST_F(QuotaTest, UploadsThatAreOnlyAnnouncedTakeNothing) {
  ASSERT_TRUE(Set("ann", "uploads", 2).ok());
  Announced first(ann_, "a", 1 << 20), second(ann_, "b", 1 << 20);
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 2; }));
  // The limit of blob memory has been announced twice.
  EXPECT_TRUE(bob_.Upload("c", std::string(1 << 20, 'x')).ok());
  Announced third(ann_, "d", 10);
  third.writer->WritesDone();
  const grpc::Status refused = third.writer->Finish();
  EXPECT_EQ(Violation(Details(refused)).quota_metric(), "uploads");
  // Data that arrives in the end is accepted if there is room.
  v1::UploadRequest request;
  request.set_data(std::string(1 << 20, 'y'));
  first.writer->Write(request);
  first.writer->WritesDone();
  EXPECT_EQ(first.writer->Finish().error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 1; }));
}

// Data that arrives too fast is not refused: it is not read until there is room.
TEST_F(QuotaTest, UploadsThatBringTooMuchWaitForTheOldest) {
  ASSERT_TRUE(Set("ann", "upload_bytes", 100'000).ok());
  const auto data = [](size_t bytes) {
    v1::UploadRequest request;
    request.set_data(std::string(bytes, 'x'));
    return request;
  };
  const auto has_come = [&](uint64_t bytes) {
    return Eventually([&] { return Quota("ann", "upload_bytes").used() == bytes; });
  };
  Announced first(ann_, "a", 200'000);
  first.writer->Write(data(60'000));
  ASSERT_TRUE(has_come(60'000));
  Announced second(ann_, "b", 64'000), third(ann_, "c", 1'000'000), fourth(ann_, "d", 100);
  second.writer->Write(data(60'000));
  ASSERT_TRUE(has_come(120'000));
  // HTTP/2 lets a stream send 65,535 bytes before they are read; a longer Write() would block.
  second.writer->Write(data(4'000));
  second.writer->WritesDone();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Quota("ann", "upload_bytes").used(), 120'000);
  EXPECT_TRUE(bob_.Upload("e", std::string(500'000, 'x')).ok());
  // Uploads that wait can be cancelled.
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 4; }));
  third.context.TryCancel();
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 3; }));
  // The oldest completes, no matter how large it is, and then the others do.
  for (int i = 0; i < 2; ++i) first.writer->Write(data(70'000));
  first.writer->WritesDone();
  EXPECT_TRUE(first.writer->Finish().ok());
  EXPECT_TRUE(second.writer->Finish().ok());
  fourth.writer->Write(data(100));
  fourth.writer->WritesDone();
  EXPECT_TRUE(fourth.writer->Finish().ok());
  EXPECT_TRUE(has_come(0));
}

// A call counts as one upload, no matter how many blobs it carries; each blob gets a new place in
// the order.
TEST_F(QuotaTest, EachBlobOfAnUploadCountsByItself) {
  ASSERT_TRUE(Set("ann", "upload_bytes", 100'000).ok());
  const auto has_come = [&](uint64_t bytes) {
    return Eventually([&] { return Quota("ann", "upload_bytes").used() == bytes; });
  };
  v1::UploadRequest request;
  Announced first(ann_, "a", 60'000);
  request.set_data(std::string(59'999, 'x'));
  first.writer->Write(request);
  ASSERT_TRUE(has_come(59'999));
  Announced second(ann_, "b", 60'002);
  request.set_data(std::string(60'000, 'x'));
  second.writer->Write(request);
  ASSERT_TRUE(has_come(119'999));
  EXPECT_EQ(Quota("ann", "uploads").used(), 2);
  // With its last byte a blob is complete, and the call continues.
  request.set_data("x");
  first.writer->Write(request);
  ASSERT_TRUE(has_come(60'000));
  request.mutable_header()->set_session_id(ann_.session.session_id());
  request.mutable_header()->set_blob("c");
  request.mutable_header()->set_size_bytes(50'002);
  request.set_data(std::string(50'000, 'x'));
  first.writer->Write(request);
  ASSERT_TRUE(has_come(110'000));
  EXPECT_EQ(Quota("ann", "uploads").used(), 2);
  // The first call now has the younger blob.
  v1::UploadRequest byte;
  byte.set_data("x");
  first.writer->Write(byte);
  second.writer->Write(byte);
  ASSERT_TRUE(has_come(110'001));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Quota("ann", "upload_bytes").used(), 110'001);
  second.writer->Write(byte);
  second.writer->WritesDone();
  EXPECT_TRUE(second.writer->Finish().ok());
  ASSERT_TRUE(has_come(50'001));
  // Between two blobs, an idle call ends like any other.
  first.writer->Write(byte);
  ASSERT_TRUE(has_come(0));
  daemon_.Advance(absl::Minutes(9));
  EXPECT_EQ(Quota("ann", "uploads").used(), 1);
  ExpectIdleUploadsEnd();
  EXPECT_EQ(Reason(first.writer->Finish()), "UPLOAD_IDLE");
}

TEST_F(QuotaTest, UploadsThatAreHeldUpEndWithTheirSession) {
  ASSERT_TRUE(Set("ann", "upload_bytes", 1000).ok());
  Client other(tcp(), {.token = ann_token_});
  Announced first(other, "a", 200'000);
  v1::UploadRequest request;
  request.set_data(std::string(2000, 'x'));
  first.writer->Write(request);
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "upload_bytes").used() == 2000; }));
  Announced second(ann_, "b", 100'000);
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 2; }));
  grpc::ClientContext context;
  v1::CloseSessionRequest close;
  close.set_session_id(ann_.session.session_id());
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(ann_.sessions->CloseSession(&context, close, &closed).ok());
  EXPECT_EQ(second.writer->Finish().error_code(), grpc::NOT_FOUND);
}

TEST_F(QuotaTest, DiskForKeptSessions) {
  ASSERT_TRUE(Set("ann", "disk", 3000).ok());
  ann_.Connect()->Call(Write(1, std::vector<float>(1000)));
  bob_.Connect()->Call(Write(1, std::vector<float>(1000)));
  Client here(tcp(), {.token = ann_token_});
  auto stays = here.Connect();
  stays->Call(Write(1, std::vector<float>(1000)));
  uint64_t kept = 0;
  // Its files exist until the next daemon restores them.
  daemon_.Restart(Daemon::Sessions::kKeep, [&] {
    for (const auto& file :
         std::filesystem::directory_iterator(daemon_.folder() + "/state/sessions")) {
      if (file.path().extension() == ".session" && file.file_size() > 4000) ++kept;
    }
  });
  EXPECT_EQ(kept, 1);
  EXPECT_NE(Reattach(tcp(), bob_, 1), nullptr);
  const auto expect_explained = [](const grpc::Status& why) {
    EXPECT_EQ(why.error_code(), grpc::NOT_FOUND);
    EXPECT_EQ(Reason(why), "SESSION_LOST");
    EXPECT_THAT(why.error_message(), HasSubstr("could not write its checkpoint: user \"ann\" may "
                                               "have 2.9 KiB of disk for checkpoints"));
    EXPECT_THAT(why.error_message(), HasSubstr("`kiln quota set USER disk=...`"));
  };
  expect_explained(stays->End());
  // A client that was disconnected at that time gets the reason from the next daemon, or the one
  // after that.
  for (int i = 0; i < 2; ++i) {
    grpc::Status why;
    EXPECT_EQ(Reattach(tcp(), ann_, 0, &why), nullptr);
    expect_explained(why);
    daemon_.Restart();
  }
}

TEST_F(QuotaTest, UploadsFromWhichNothingComesEnd) {
  Announced idle(ann_, "a", 1 << 20);
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 1; }));
  daemon_.Advance(absl::Minutes(9));
  EXPECT_EQ(Quota("ann", "uploads").used(), 1);
  ExpectIdleUploadsEnd();
  const grpc::Status ended = idle.writer->Finish();
  EXPECT_EQ(ended.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Reason(ended), "UPLOAD_IDLE");
}

TEST_F(QuotaTest, AStepOfTheWallClockEndsNoUpload) {
  Announced idle(ann_, "a", 1 << 20);
  ASSERT_TRUE(Eventually([&] { return Quota("ann", "uploads").used() == 1; }));
  daemon_.StepWallClock(absl::Hours(1));
  EXPECT_EQ(Quota("ann", "uploads").used(), 1);
  daemon_.StepWallClock(-absl::Hours(2));
  ExpectIdleUploadsEnd();
  EXPECT_EQ(Reason(idle.writer->Finish()), "UPLOAD_IDLE");
}

// A user at all limits at once causes no failure of another user's calls.
TEST_F(QuotaTest, WhoHasReachedAllHisLimitsHindersNobody) {
  for (const auto& [resource, limit] : std::map<std::string, uint64_t>{{"device_memory", 4096},
                                                                       {"buffers", 20},
                                                                       {"programs", 2},
                                                                       {"operations", 16},
                                                                       {"sessions", 1},
                                                                       {"uploads", 2},
                                                                       {"upload_bytes", 500},
                                                                       {"disk", 1},
                                                                       {"graph_nodes", 3},
                                                                       {"host_memory", 400'000}}) {
    ASSERT_TRUE(Set("ann", resource, limit).ok());
  }
  auto stream = ann_.Connect();
  // One upload has sent too much, so the other is not read.
  Announced upload(ann_, "announced", 1 << 16), held_up(ann_, "held up", 1 << 16);
  v1::UploadRequest bytes;
  bytes.set_data(std::string(600, 'x'));
  upload.writer->Write(bytes);
  ASSERT_TRUE(Eventually([&] {
    return Quota("ann", "uploads").used() == 2 && Quota("ann", "upload_bytes").used() == 600;
  }));
  held_up.writer->Write(bytes);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::map<std::string, int> refused;
  std::thread greedy([&] {
    const auto count = [&refused](const v1::Status& error) {
      if (error.code() != 0) ++refused[Violation(error).quota_metric()];
    };
    v1::Graph large = AddGraph(2);
    *large.add_nodes() = v1::Node(large.nodes(2));
    const std::string text(500'000, 't');
    count(stream->Call(Write(1, std::vector<float>(2000))).error());
    for (uint64_t i = 2; i < 22; ++i) stream->Call(Write(i, std::vector<float>(50)));
    for (uint64_t i = 100; !stop; i += 3) {
      count(stream->Call(Write(i, {1})).error());
      count(stream->Call(Define(i, AddGraph(static_cast<int64_t>(i)))).error());
      count(stream->Call(Define(i + 1, large)).error());
      v1::Graph heavy = AddGraph(3);
      heavy.mutable_nodes(2)->set_source(text);
      count(stream->Call(Define(i + 2, heavy)).error());
      count(Details(ann_.Upload(absl::StrCat("more", i), std::string(1000, 'x'))));
      count(Details(Client(tcp(), {.token = ann_token_}).opened));
      // More than the number that may wait.
      uint64_t last = 0;
      for (int write = 0; write < 40; ++write) last = stream->Send(Write(i, {1}));
      stream->Answer(last);
      ++rounds;
    }
  });
  EXPECT_TRUE(Eventually([&] { return rounds >= 4; }));  // he has reached all limits
  // Everything that a client does, repeatedly.
  for (int round = 0; round < 20; ++round) {
    Client bob(tcp(), {.token = bob_token_});
    ASSERT_TRUE(bob.opened.ok()) << bob.opened.error_message();
    auto others = bob.Connect();
    DefineCounter(*others);
    for (uint64_t step = 0; step < 10; ++step)
      EXPECT_FALSE(others->Call(RunProgram(1, {1, 2}, {10 + step})).has_error());
    EXPECT_EQ(Floats(others->Call(Read(1)).data())[0], 10);
    EXPECT_TRUE(bob.Upload("blob", std::string(100'000, 'b')).ok());
    EXPECT_FALSE(others->Call(WriteBlob(50, "blob", 25'000)).has_error());
    std::string data;
    EXPECT_TRUE(bob.Download(50, others->next_sequence() - 1, &data).ok());
    EXPECT_EQ(data, std::string(100'000, 'b'));
    grpc::ClientContext context;
    v1::CloseSessionRequest close;
    close.set_session_id(bob.session.session_id());
    v1::CloseSessionResponse closed;
    EXPECT_TRUE(bob.sessions->CloseSession(&context, close, &closed).ok());
  }
  stop = true;
  greedy.join();
  for (const char* resource : {"device_memory", "buffers", "programs", "sessions", "uploads",
                               "graph_nodes", "host_memory"})
    EXPECT_GT(refused[resource], 0) << resource;
  EXPECT_EQ(Quota("ann", "buffers").used(), 20);
  // One message of each upload.
  EXPECT_LE(Quota("ann", "upload_bytes").used(), 1200);
  EXPECT_LE(Quota("ann", "device_memory").used(), 4096);
}

TEST_F(QuotaTest, AUsersShareOfTheDevicesTime) {
  const auto weight_of = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::ListUsersResponse users;
    EXPECT_TRUE(owner_.admin->ListUsers(&context, {}, &users).ok());
    for (const v1::User& user : users.users())
      if (user.name() == name) return user.weight();
    return 0.0;
  };
  const auto weight = [&] { return weight_of("ann"); };
  // He has not connected yet.
  AddUser("carl");
  EXPECT_EQ(weight_of("carl"), 1);
  ASSERT_TRUE(Set("carl", "weight", 300).ok());
  EXPECT_EQ(weight_of("carl"), 3);
  EXPECT_EQ(weight(), 1);
  ASSERT_TRUE(Set("ann", "weight", 250).ok());
  EXPECT_EQ(weight(), 2.5);
  ASSERT_TRUE(Set("ann", "weight", 50).ok());
  EXPECT_EQ(weight(), 0.5);
  EXPECT_EQ(Quota("ann", "weight").limit(), 50);
  EXPECT_EQ(Reason(Set("ann", "weight", 0)), "BAD_WEIGHT");
  EXPECT_EQ(weight(), 0.5);
}

TEST_F(QuotaTest, AdminsAloneSetThemAndItIsAudited) {
  grpc::ClientContext context;
  v1::SetQuotaRequest request;
  request.set_user("ann");
  (*request.mutable_limits())["sessions"] = 100;
  v1::SetQuotaResponse response;
  EXPECT_EQ(ann_.admin->SetQuota(&context, request, &response).error_code(),
            grpc::PERMISSION_DENIED);
  request.add_defaults("buffers");
  grpc::ClientContext again;
  ASSERT_TRUE(owner_.admin->SetQuota(&again, request, &response).ok());
  EXPECT_EQ(response.user().user(), "ann");
  const grpc::Status unknown = Set("ann", "gold", 1);
  EXPECT_EQ(unknown.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(unknown), "UNKNOWN_RESOURCE");
  EXPECT_THAT(unknown.error_message(), HasSubstr("device_memory"));
  EXPECT_EQ(Reason(Set("an n", "sessions", 1)), "USER_NAME");
  std::stringstream audit;
  audit << std::ifstream(daemon_.folder() + "/state/audit.jsonl").rdbuf();
  EXPECT_THAT(audit.str(), HasSubstr("\"action\":\"set_quota\",\"subject\":\"ann sessions=100 "
                                     "buffers=default\",\"outcome\":\"ok\""));
  EXPECT_THAT(audit.str(), HasSubstr("UNKNOWN_RESOURCE"));
}

TEST_F(QuotaTest, AUserSeesHisOwnAlone) {
  ASSERT_TRUE(Set("carl", "sessions", 3).ok());  // who has not connected yet
  EXPECT_EQ(Quota("carl", "sessions").limit(), 3);
  EXPECT_EQ(Quota("carl", "buffers").limit(), 1 << 20);
  const v1::ListQuotasResponse list = ListFor(ann_);
  ASSERT_EQ(list.users_size(), 1);
  EXPECT_EQ(list.users(0).user(), "ann");
  EXPECT_GE(ListFor(owner_).users_size(), 4);
}

TEST(QuotaConfiguration, HoldsForEverybodyWhoHasNoOther) {
  TestDaemon daemon(
      {.configure = [](config::Config& config) { config.quota[quota::Resource::kBuffers] = 1; }});
  Client client(daemon.address());
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
  EXPECT_EQ(Reason(stream->Call(Write(2, {1})).error()), "QUOTA_EXCEEDED");
  grpc::ClientContext context;
  v1::SetQuotaRequest request;
  request.set_user(*auth::AccountName(geteuid()));
  (*request.mutable_limits())["buffers"] = 0;
  v1::SetQuotaResponse response;
  ASSERT_TRUE(client.admin->SetQuota(&context, request, &response).ok());
  for (uint64_t i = 3; i < 10; ++i) EXPECT_FALSE(stream->Call(Write(i, {1})).has_error());
}

}  // namespace
}  // namespace kiln::testing
