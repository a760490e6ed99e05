// Tests of single services on a separate port.
#include "server/rpc/services/services.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"
#include "server/rpc/access.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"

namespace kiln::rpc {
namespace {

std::string MakeServiceFolder() {
  std::string pattern = ::testing::TempDir() + "kiln_services_XXXXXX";
  return mkdtemp(pattern.data());
}

std::shared_ptr<grpc::ServerCredentials> Loopback(Access& access) {
  auto credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  credentials->SetAuthMetadataProcessor(access.AddListener(Entrance::kLoopback).processor);
  return credentials;
}

class ServicesTest : public ::testing::Test {
 protected:
  ServicesTest() {
    runtime::ProgramCache::Options programs;
    programs.compile = kiln::testing::FakeCompile;
    programs.metrics = &metrics_;
    programs.clock = SystemClock();
    programs_ = std::make_unique<runtime::ProgramCache>(std::move(programs));
    sessions::Registry::Options registry;
    registry.new_id = sessions::RandomId;
    registry.services = {programs_.get(), &blobs_, &metrics_, &copies_, SystemClock(), {}, {}};
    registry_ = std::make_unique<sessions::Registry>(std::move(registry), std::vector{&device_});
    users_ = std::make_unique<auth::Authenticator>(auth::Authenticator::Options{
        .store = store_.get(), .key = *cache::Secret::Open(folder_ + "/key"), .now = [] {
          return absl::Now();
        }});
    audit_ =
        *auth::AuditLog::Open(folder_ + "/audit", *cache::Secret::Open(folder_ + "/audit_key"));
    access_ = std::make_unique<Access>(
        Access::Options{users_.get(), audit_.get(), &metrics_, SystemClock()});
    const ServiceParts common{registry_.get(), access_.get(), &metrics_, SystemClock()};
    session_parts_ = {common, &copies_, audit_.get(), &open_calls_};
    device_parts_ = {common, {&device_}, {{"cpu", 1, ""}, {"cuda", 0, "no library \xff"}}};
    services_.push_back(MakeSessionService(session_parts_));
    services_.push_back(MakeDeviceService(device_parts_));
    grpc::ServerBuilder builder;
    for (const auto& service : services_) builder.RegisterService(service.get());
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", Loopback(*access_), &port);
    server_ = builder.BuildAndStart();
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  }
  ~ServicesTest() override {
    registry_->CloseAll(absl::OkStatus());
    server_->Shutdown();
    server_->Wait();
  }

  metrics::Metrics metrics_{"test"};
  buffers::BlobStore blobs_{1000};
  runtime::ThreadPool copies_{1};
  runtime::ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                                 metrics_.ForDevice("cpu:0"), SystemClock()};
  std::unique_ptr<runtime::ProgramCache> programs_;
  std::unique_ptr<sessions::Registry> registry_;
  const std::string folder_ = MakeServiceFolder();
  std::unique_ptr<auth::UserStore> store_ = *auth::UserStore::Open(folder_ + "/users");
  std::unique_ptr<auth::Authenticator> users_;
  std::unique_ptr<auth::AuditLog> audit_;
  std::unique_ptr<Access> access_;
  OpenCalls open_calls_;
  SessionServiceParts session_parts_;
  DeviceServiceParts device_parts_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ServicesTest, ListingSurvivesLongNamesOfManyBytesEach) {
  const auto stub = v1::SessionService::NewStub(channel_);
  v1::OpenSessionRequest open;
  open.mutable_client()->set_name(std::string(99, 'n') + "\u00e9");
  open.mutable_client()->set_version(std::string(98, 'v') + "\u20ac");
  open.mutable_client()->set_description(std::string(199, 'd') + "\u00e9");
  v1::OpenSessionResponse opened;
  grpc::ClientContext open_context;
  ASSERT_TRUE(stub->OpenSession(&open_context, open, &opened).ok());
  v1::ListSessionsResponse list;
  grpc::ClientContext list_context;
  const grpc::Status status = stub->ListSessions(&list_context, {}, &list);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(list.sessions_size(), 1);
  EXPECT_EQ(list.sessions(0).client().name(), std::string(99, 'n'));
  EXPECT_EQ(list.sessions(0).client().version(), std::string(98, 'v'));
  EXPECT_EQ(list.sessions(0).client().description(), std::string(199, 'd'));
}

TEST_F(ServicesTest, EveryDriverSaysWhatItFoundOrWhyNot) {
  const auto stub = v1::DeviceService::NewStub(channel_);
  v1::ListDevicesResponse list;
  grpc::ClientContext context;
  const grpc::Status status = stub->ListDevices(&context, {}, &list);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(list.drivers_size(), 2);
  EXPECT_EQ(list.drivers(0).name(), "cpu");
  EXPECT_EQ(list.drivers(0).devices(), 1);
  EXPECT_EQ(list.drivers(0).why_not_more(), "");
  EXPECT_EQ(list.drivers(1).name(), "cuda");
  EXPECT_EQ(list.drivers(1).devices(), 0);
  EXPECT_EQ(list.drivers(1).why_not_more().substr(0, 11), "no library ");
}

// The call is cancelled while the watch waits, checks or writes: it must end exactly once each
// time, and must not access itself afterwards (the sanitizers check this). Every tenth call ends
// when another watch, which began at the same time, has sent its second message, since both check
// again at about that time.
TEST_F(ServicesTest, WatchesEndWheneverTheyAreCancelled) {
  const auto stub = v1::DeviceService::NewStub(channel_);
  v1::WatchDevicesRequest request;
  request.set_min_interval_ms(100);
  bool is_draining = false;
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    const auto reader = stub->WatchDevices(&context, request);
    v1::WatchDevicesResponse response;
    if (i % 2 == 0) {
      ASSERT_TRUE(reader->Read(&response));
    }
    if (i % 10 == 0) {
      grpc::ClientContext other_context;
      const auto other = stub->WatchDevices(&other_context, request);
      ASSERT_TRUE(other->Read(&response));
      is_draining = !is_draining;
      device_.SetDraining(is_draining);
      ASSERT_TRUE(other->Read(&response));
      context.TryCancel();
      other_context.TryCancel();
      while (other->Read(&response)) {
      }
      EXPECT_EQ(other->Finish().error_code(), grpc::CANCELLED);
    }
    context.TryCancel();
    while (reader->Read(&response)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
  }
}

}  // namespace
}  // namespace kiln::rpc
