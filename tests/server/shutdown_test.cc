// How a daemon starts and ends.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

DaemonParts FakeParts() {
  DaemonParts parts;
  std::vector<std::unique_ptr<drivers::Device>> devices;
  devices.push_back(std::make_unique<FakeDevice>("cpu:0", 1000));
  parts.drivers.push_back(std::make_unique<FakeDriver>(std::move(devices)));
  parts.compile = FakeCompile;
  parts.now = [] { return absl::Now(); };
  return parts;
}

// What is on the devices ends by itself.
void ExpectStopsBeforeItsGraceEnds(TestDaemon& daemon) {
  constexpr absl::Duration kGrace = absl::Minutes(1);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(daemon.daemon().Stop(kGrace));
  EXPECT_LT(absl::Now() - start, kGrace);
}

TEST(Shutdown, UnderLoadEveryOperationIsAnsweredOrRefused) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  constexpr uint64_t kRuns = 1000;  // more than the device gets at once
  for (uint64_t i = 0; i < kRuns; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
  // What is answered at once, behind them: the daemon has taken them all.
  ASSERT_FALSE(stream->Call(Write(3, {1})).has_error());
  std::thread release([&] {
    // The last one is not on the device yet: it is refused once the daemon stops.
    stream->Answer(kCounterOperations + kRuns);
    daemon.device().LetGo();
  });
  ExpectStopsBeforeItsGraceEnds(daemon);
  release.join();
  int done = 0, refused = 0, other = 0;
  for (uint64_t sequence = kCounterOperations + 1; sequence <= kCounterOperations + kRuns;
       ++sequence) {
    const v1::Result result = stream->Answer(sequence);
    if (!result.has_error()) {
      ++done;
    } else if (result.error().code() == grpc::UNAVAILABLE) {
      EXPECT_THAT(result.error().message(), HasSubstr("daemon is shutting down"));
      ++refused;
    } else {
      ++other;
    }
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(done, daemon.device().lists_run());
  EXPECT_EQ(other, 0);
  const grpc::Status status = stream->End();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "daemon is shutting down");
}

TEST(Shutdown, WhatHasRunIsAnsweredToAClientThatKeepsSending) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  std::atomic<bool> stopped{false};
  // No more ahead than a socket holds: a write that has to wait makes gRPC's own end take seconds.
  std::thread sender([&] {
    for (int i = 0; !stopped;) {
      if (i > daemon.device().lists_run() + 100) {
        absl::SleepFor(absl::Microseconds(100));
      } else {
        stream->Send(RunProgram(1, {1, 2}, {10 + static_cast<uint64_t>(i++)}));
      }
    }
  });
  ASSERT_TRUE(Eventually([&] { return daemon.device().lists_run() > 100; }));
  std::thread stop([&] { daemon.daemon().Stop(); });
  const grpc::Status status = stream->End();
  stop.join();
  stopped = true;
  sender.join();
  EXPECT_EQ(status.error_message(), "daemon is shutting down");
  EXPECT_EQ(
      absl::c_count_if(stream->answers(), [](const auto& a) { return !a.second.has_error(); }),
      kCounterOperations + daemon.device().lists_run());
}

TEST(Shutdown, WithClientsThatKeepSending) {
  TestDaemon daemon;
  std::vector<std::thread> senders;
  std::atomic<int> started{0};
  for (int c = 0; c < 3; ++c) {
    senders.emplace_back([&] {
      Client client(daemon.address());
      auto stream = client.Connect();
      stream->Call(Define(1, AddGraph(1)));
      stream->Call(Write(1, {1}));
      ++started;
      for (uint64_t i = 0; i < 1'000'000; ++i) {
        if (stream->Call(RunProgram(1, {1, 1}, {10 + i})).error().code() != 0) break;
      }
      EXPECT_THAT(stream->End().error_code(), AnyOf(grpc::UNAVAILABLE, grpc::CANCELLED));
    });
  }
  ASSERT_TRUE(Eventually([&] { return started == 3; }));
  absl::SleepFor(absl::Milliseconds(50));
  ExpectStopsBeforeItsGraceEnds(daemon);
  for (std::thread& sender : senders) sender.join();
}

TEST(Shutdown, UploadsEndWithTheReason) {
  TestDaemon daemon;
  Client client(daemon.address());
  grpc::ClientContext context;
  v1::UploadResponse response;
  auto writer = client.blobs->Upload(&context, &response);
  v1::UploadRequest request;
  request.mutable_header()->set_session_id(client.session.session_id());
  request.mutable_header()->set_blob("large");
  request.mutable_header()->set_size_bytes(1 << 20);
  request.set_data(std::string(1000, 'x'));
  ASSERT_TRUE(writer->Write(request));
  ASSERT_TRUE(Eventually([&] {
    return daemon.daemon().MetricsText().find("kiln_blob_bytes 1000\n") != std::string::npos;
  }));
  std::thread stop([&] { daemon.daemon().Stop(); });
  request.clear_header();
  request.set_data(std::string(1, 'x'));
  while (writer->Write(request)) absl::SleepFor(absl::Milliseconds(1));
  const grpc::Status status = writer->Finish();
  stop.join();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(Reason(status), "SHUTTING_DOWN");
}

TEST(Shutdown, AnUploadToTheDeviceIsAnswered) {
  TestDaemon daemon;
  daemon.device().HideMemory();
  daemon.device().HoldCopies();
  Client client(daemon.address());
  auto stream = client.Connect();
  const auto write = stream->Send(Write(3, {5, 6}));
  ASSERT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() > 0; }));
  std::thread release([&] {
    absl::SleepFor(absl::Milliseconds(50));
    daemon.device().LetCopiesGo();
  });
  EXPECT_TRUE(daemon.daemon().Stop(absl::Seconds(10)));
  release.join();
  EXPECT_FALSE(stream->Answer(write).has_error());
}

TEST(Shutdown, CopiesThatOutlastItAreWaitedFor) {
  std::thread downloader, release;
  {
    TestDaemon daemon;
    daemon.device().HideMemory();
    daemon.device().HoldCopies();
    Client client(daemon.address());
    auto stream = client.Connect();
    const auto write = stream->Send(Write(3, {5, 6}));
    ASSERT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() > 0; }));
    // It waits for the upload and is cancelled, but the upload's end will come back to it.
    downloader = std::thread([&] {
      std::string data;
      EXPECT_FALSE(client.Download(3, write, &data).ok());
    });
    absl::SleepFor(absl::Milliseconds(100));
    EXPECT_FALSE(daemon.daemon().Stop(absl::Milliseconds(10)));
    downloader.join();
    release = std::thread([&device = daemon.device()] {
      absl::SleepFor(absl::Milliseconds(100));
      device.LetCopiesGo();
    });
  }
  release.join();
}

TEST(Shutdown, SecondDaemonOnOneSocketIsRefused) {
  TestDaemon daemon;
  config::Config config = daemon.config();
  config.listen = {daemon.address()};
  config.state_folder = daemon.folder() + "/elsewhere";
  const auto second = Daemon::Start(config, FakeParts());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("another kilnd is running on unix:"));
  EXPECT_TRUE(Client(daemon.address()).opened.ok());
}

TEST(Shutdown, PortInUseIsNamed) {
  TestDaemon daemon;
  config::Config config = daemon.config();
  config.listen = {daemon.daemon().listening()[1]};
  config.state_folder = daemon.folder() + "/elsewhere";
  const auto second = Daemon::Start(config, FakeParts());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(config.listen[0]));
}

TEST(Shutdown, StaleSocketIsReplacedAndRemoved) {
  std::string pattern = "/tmp/kiln_test_XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  const std::string path = folder + "/sub/kilnd.sock";
  std::filesystem::create_directory(folder + "/sub");
  // What a killed daemon leaves.
  const int stale = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  config::Config config;
  config.listen = {"unix:" + path};
  config.cache_folder = folder + "/cache";
  config.state_folder = folder + "/state";
  {
    auto daemon = Daemon::Start(config, FakeParts());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    EXPECT_TRUE(Client(config.listen[0]).opened.ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // A file that is no socket is not ours to remove.
  std::ofstream(path) << "precious";
  const auto refused = Daemon::Start(config, FakeParts());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST(Shutdown, NoDeviceIsNamed) {
  config::Config config;
  config.listen = {"127.0.0.1:0"};
  config.cache_folder = "/tmp/kiln_test_no_device";
  config.devices = {"cuda:3"};
  const auto daemon = Daemon::Start(config, FakeParts());
  EXPECT_THAT(std::string(daemon.status().message()), HasSubstr("there is no device named cuda:3"));
}

}  // namespace
}  // namespace kiln::testing
