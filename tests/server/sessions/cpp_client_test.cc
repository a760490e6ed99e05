// The C++ client and a daemon in the same process: what the client leaves behind, and how it learns
// of a shutdown.
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/client.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLargeFloats = (1 << 20) / sizeof(float) + 1;  // sent as a blob

class CppClientTest : public ::testing::Test {
 protected:
  static TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.memory_bytes = 64 << 20;
    options.blob_limit_bytes = 64 << 20;
    return options;
  }
  CppClientTest() : client_(Open(daemon_.address())) {
    EXPECT_TRUE(client_->Barrier().ok());  // its stream has attached
  }

  static ConnectOptions Patient(const std::string& address) {
    return {.address = address, .timeout = kPatience, .closing_timeout = kPatience};
  }
  static std::unique_ptr<kiln::Client> Open(const std::string& address) {
    auto client = kiln::Client::Connect(Patient(address));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // Returns the graph x + x.
  static Graph Doubling() {
    GraphBuilder builder;
    const Value x = builder.Input(DType::kFloat32, {1});
    builder.Output(builder.AddNode("add", {x, x}));
    return *builder.Build();
  }
  // Opens a client of the same daemon by an address that might be on another machine.
  std::unique_ptr<kiln::Client> OpenRemote() {
    const std::string tcp = daemon_.daemon().listening()[1];
    return Open("0.0.0.0" + tcp.substr(tcp.rfind(':')));
  }
  // Each run depends on the one before. `*last` becomes the last one.
  static constexpr int kRuns = 1000;
  void SendMoreThanTheDeviceGets(const Program& program, RunResult* last) {
    for (int i = 0; i < kRuns; ++i) *last = *client_->Run(program, {last->outputs[0]});
  }
  absl::Status UploadLarge() {
    return client_->Upload<float>({kLargeFloats}, absl::MakeConstSpan(large_)).status();
  }
  // A stopped daemon is distinguished from an unreachable one.
  static void ExpectStopped(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ErrorReason(status), "SHUTTING_DOWN") << status;
  }

  TestDaemon daemon_{Options()};
  const std::unique_ptr<kiln::Client> client_;
  const std::vector<float> large_ = std::vector<float>(kLargeFloats, 1.0f);
};

TEST_F(CppClientTest, UploadsLeaveNoBlobs) {
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(UploadLarge().ok());
  ASSERT_TRUE(client_->Barrier().ok());
  const std::string metrics = daemon_.daemon().MetricsText();
  EXPECT_NE(metrics.find("kiln_blob_bytes 0\n"), std::string::npos);
}

// As from another machine, to which the same bytes are not sent twice.
TEST_F(CppClientTest, WhatTheDaemonHasIsNotSentAgain) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes minutes for megabytes over TCP";
#endif
  const auto remote = OpenRemote();
  constexpr int64_t kFloats = (9 << 20) / sizeof(float);  // the third piece is a quarter of one
  std::vector<float> data(kFloats, 1.0f);                 // the second piece equals the first
  const auto received = [&] {
    EXPECT_TRUE(remote->Barrier().ok());
    const std::string metrics = daemon_.daemon().MetricsText();
    const std::string name = "\nkiln_received_bytes_total ";
    return std::stoll(metrics.substr(metrics.find(name) + name.size()));
  };
  const int64_t before = received();
  const auto upload = [&] {
    auto tensor = remote->Upload<float>({kFloats}, absl::MakeConstSpan(data));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_TRUE(*remote->Download<float>(*tensor) == data);
  };
  upload();
  EXPECT_EQ(received() - before, 5 << 20);
  upload();
  EXPECT_EQ(received() - before, 5 << 20);
  data[0] = -1;
  upload();
  EXPECT_EQ(received() - before, 9 << 20);
}

TEST_F(CppClientTest, ThreadsThatUploadPiecesTakeTurns) {
  const auto remote = OpenRemote();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&remote, i] {
      const std::vector<float> data(kLargeFloats + 1000 * (i / 2), static_cast<float>(i / 2));
      for (int j = 0; j < 3; ++j) {
        auto tensor = remote->Upload<float>({static_cast<int64_t>(data.size())}, data);
        ASSERT_TRUE(tensor.ok()) << tensor.status();
        EXPECT_EQ(*remote->Download<float>(*tensor), data);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CppClientTest, AnIdleClientHearsOfAShutdown) {
  daemon_.daemon().Stop(kPatience);
  const absl::Status status = client_->Barrier();
  ExpectStopped(status);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has stopped, so its sessions"));
}

TEST_F(CppClientTest, AClientThatWaitsHearsOfAShutdown) {
  auto program = *client_->Define(Doubling(), "double");
  auto input = *client_->Upload<float>({1}, {1});
  daemon_.device().Hold();
  const RunResult first = *client_->Run(program, {input});
  RunResult last = first;
  SendMoreThanTheDeviceGets(program, &last);
  ASSERT_TRUE(client_->DownloadBytes(input).ok());  // the daemon has received them all
  std::thread stop([&] { daemon_.daemon().Stop(kPatience); });
  // Runs on the device complete; waiting runs do not start.
  ExpectStopped(client_->Read(last.outputs[0]).Get().status());
  daemon_.device().LetGo();
  EXPECT_TRUE(first.done.Get().ok());
  stop.join();
  ExpectStopped(client_->DownloadBytes(input).status());
}

TEST_F(CppClientTest, GoesOnAfterARestart) {
  auto program = *client_->Define(Doubling(), "double");
  RunResult run = *client_->Run(program, {*client_->Upload<float>({1}, {1})});
  std::vector<Tensor> doubled;
  for (int restarts = 0; restarts < 3; ++restarts) {
    daemon_.Restart();
    run = *client_->Run(program, {run.outputs[0]});
    ASSERT_TRUE(UploadLarge().ok());
  }
  EXPECT_THAT(*client_->Download<float>(run.outputs[0]), ::testing::ElementsAre(16));
}

TEST_F(CppClientTest, AnotherClientAttaches) {
  auto first = Open(daemon_.address());
  auto program = *first->Define(Doubling(), "double");
  daemon_.device().Hold();
  RunResult run = *first->Run(program, {*first->Upload<float>({1}, {3})});
  ASSERT_TRUE(first->Detach("night", absl::Minutes(1), {{"six", run.outputs[0]}}).ok());
  EXPECT_EQ(ErrorReason(client_->Detach("night", absl::Minutes(1), {})), "NAME_TAKEN");
  first.reset();
  daemon_.device().LetGo();
  auto attached = kiln::Client::Attach("night", Patient(daemon_.address()));
  ASSERT_TRUE(attached.ok()) << attached.status();
  const NamedTensor& six = attached->tensors.at("six");
  EXPECT_EQ(six.dtype, DType::kFloat32);
  EXPECT_EQ(six.shape, Shape{1});
  EXPECT_THAT(*attached->client->Download<float>(six.tensor), ::testing::ElementsAre(6));
  auto again = *attached->client->Define(Doubling(), "double");
  run = *attached->client->Run(again, {six.tensor});
  EXPECT_THAT(*attached->client->Download<float>(run.outputs[0]), ::testing::ElementsAre(12));
  EXPECT_EQ(ErrorReason(kiln::Client::Attach("day", Patient(daemon_.address())).status()),
            "UNKNOWN_NAME");
}

TEST_F(CppClientTest, ASessionThatWasNotKeptIsOneError) {
  auto input = *client_->Upload<float>({1}, {1});
  ASSERT_TRUE(client_->Barrier().ok());
  daemon_.Restart(Daemon::Sessions::kEnd);
  ExpectStopped(client_->Barrier());
}

// Answered while the device still executes the first run.
TEST_F(CppClientTest, CancelEndsWhatTheDeviceHasNotBegun) {
  auto program = *client_->Define(Doubling(), "double");
  auto input = *client_->Upload<float>({1}, {1});
  daemon_.device().Hold();
  const RunResult first = *client_->Run(program, {input});
  RunResult last = first;
  SendMoreThanTheDeviceGets(program, &last);
  ASSERT_TRUE(client_->DownloadBytes(input).ok());  // the daemon has received them all
  EXPECT_TRUE(client_->Cancel().ok());
  for (const absl::Status& status :
       {last.done.Get().status(), client_->Read(last.outputs[0]).Get().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(ErrorReason(status), "CANCELLED");
    EXPECT_THAT(std::string(status.message()), HasSubstr("run it again for its results"));
  }
  daemon_.device().LetGo();
  EXPECT_TRUE(first.done.Get().ok());
  EXPECT_TRUE(client_->Run(program, {input})->done.Get().ok());
  EXPECT_LT(daemon_.device().lists_run(), kRuns);
}

TEST_F(CppClientTest, ASessionIsInteractiveUnlessItSaysBatch) {
  ConnectOptions options = Patient(daemon_.address());
  options.batch = true;
  const auto batch = *kiln::Client::Connect(options);
  Client admin(daemon_.address());
  grpc::ClientContext context;
  v1::ListSessionsResponse sessions;
  ASSERT_TRUE(admin.sessions->ListSessions(&context, {}, &sessions).ok());
  std::map<std::string, v1::Priority> priorities;
  for (const v1::Session& session : sessions.sessions())
    priorities[session.name()] = session.priority();
  EXPECT_EQ(priorities[batch->session()], v1::BATCH);
  EXPECT_EQ(priorities[client_->session()], v1::INTERACTIVE);
}

TEST_F(CppClientTest, AnUploadHearsOfAShutdown) {
  ASSERT_TRUE(UploadLarge().ok());
  std::thread stop([&] { daemon_.daemon().Stop(kPatience); });
  absl::Status status;
  while (status.ok()) status = UploadLarge();
  ExpectStopped(status);
  stop.join();
}

}  // namespace
}  // namespace kiln::testing
