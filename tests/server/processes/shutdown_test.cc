// The start and stop of a daemon.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
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
  parts.clock = SystemClock();
  return parts;
}

// Longer than any test: Stop returns only because the devices have completed their work.
constexpr absl::Duration kGrace = absl::Hours(1);

// Whether a page for supervisors says yes: /healthz or /readyz.
bool SaysYes(TestDaemon& daemon, const std::string& page) {
  return std::system(absl::StrCat("curl -sf -o /dev/null http://127.0.0.1:",
                                  daemon.daemon().metrics_port(), page)
                         .c_str()) == 0;
}

TEST(Shutdown, ADaemonThatStopsIsAliveButNotReady) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  stream->Send(RunProgram(1, {1, 2}, {10}));
  ASSERT_FALSE(stream->Call(Write(3, {1})).has_error());
  EXPECT_TRUE(SaysYes(daemon, "/readyz"));
  std::thread stop([&] { EXPECT_TRUE(daemon.daemon().Stop(kGrace)); });
  EXPECT_TRUE(Eventually([&] { return !SaysYes(daemon, "/readyz"); }));
  EXPECT_TRUE(SaysYes(daemon, "/healthz"));
  daemon.device().LetGo();
  stream->End();
  stop.join();
}

TEST(Shutdown, UnderLoadEveryOperationIsAnsweredOrRefused) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  daemon.device().Hold();
  constexpr uint64_t kRuns = 1000;  // more than the device gets at once
  for (uint64_t i = 0; i < kRuns; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
  // Sent after them and answered at once, so the daemon has received them all.
  ASSERT_FALSE(stream->Call(Write(3, {1})).has_error());
  std::thread stop([&] { EXPECT_TRUE(daemon.daemon().Stop(kGrace)); });
  // The last run has not reached the device: it is refused once the daemon stops.
  stream->Answer(kCounterOperations + kRuns);
  daemon.device().LetGo();
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
  stop.join();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "daemon is shutting down");
}

TEST(Shutdown, WhatHasRunIsAnsweredToAClientThatKeepsSending) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  DefineCounter(*stream);
  std::atomic<bool> stopped{false};
  // At most as far ahead as a socket buffers: if a write has to wait, gRPC's shutdown takes
  // seconds.
  std::thread sender([&] {
    const auto may_go_on = [&](int64_t sent) {
      return Eventually([&] { return stopped || sent <= daemon.device().lists_run() + 100; });
    };
    for (int64_t i = 0; may_go_on(i) && !stopped; ++i)
      stream->Send(RunProgram(1, {1, 2}, {10 + static_cast<uint64_t>(i)}));
  });
  ASSERT_TRUE(Eventually([&] { return daemon.device().lists_run() > 100; }));
  std::thread stop([&] { daemon.daemon().Stop(kGrace); });
  const grpc::Status status = stream->End();
  stopped = true;
  sender.join();
  stop.join();
  EXPECT_EQ(status.error_message(), "daemon is shutting down");
  EXPECT_EQ(
      absl::c_count_if(stream->answers(), [](const auto& a) { return !a.second.has_error(); }),
      kCounterOperations + daemon.device().lists_run());
}

TEST(Shutdown, WithClientsThatKeepSending) {
  TestDaemon daemon;
  std::vector<std::thread> senders;
  std::array<std::atomic<int>, 3> answered{};
  for (std::atomic<int>& count : answered) {
    senders.emplace_back([&] {
      Client client(daemon.address());
      auto stream = client.Connect();
      stream->Call(Define(1, AddGraph(1)));
      stream->Call(Write(1, {1}));
      for (uint64_t i = 0; !stream->Call(RunProgram(1, {1, 1}, {10 + i})).has_error(); ++i) ++count;
      EXPECT_THAT(stream->End().error_code(), AnyOf(grpc::UNAVAILABLE, grpc::CANCELLED));
    });
  }
  for (const std::atomic<int>& count : answered)
    EXPECT_TRUE(Eventually([&] { return count > 30; }));
  EXPECT_TRUE(daemon.daemon().Stop(kGrace));
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
  std::thread stop([&] { daemon.daemon().Stop(kGrace); });
  request.clear_header();
  request.set_data(std::string(1, 'x'));
  // The upload has room for far more bytes than this loop can send.
  EXPECT_TRUE(Eventually([&] { return !writer->Write(request); }));
  const grpc::Status status = writer->Finish();
  stop.join();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(Reason(status), "SHUTTING_DOWN");
}

// A daemon whose device holds a copy for a client's write.
class HeldCopy {
 public:
  explicit HeldCopy(absl::Duration flush_time)
      : daemon_(std::make_unique<TestDaemon>(Options(flush_time))), device_(daemon_->device()) {
    device_.HideMemory();
    device_.HoldCopies();
    write_ = stream_->Send(Write(3, {5, 6}));
    EXPECT_TRUE(Eventually([&] { return device_.held_copies() == 1; }));
  }

  // From now on the copy completes once the daemon's shutdown waits for it.
  void LetGoWhenWaitedFor() { lets_go_ = true; }
  // The number of times that the daemon's shutdown has waited for the device.
  int waits() const { return waits_; }
  TestDaemon& daemon() { return *daemon_; }
  Client& client() { return client_; }
  Stream& stream() { return *stream_; }
  uint64_t write() const { return write_; }
  void DestroyDaemon() { daemon_.reset(); }

 private:
  TestDaemonOptions Options(absl::Duration flush_time) {
    TestDaemonOptions options;
    options.flush_time = flush_time;
    options.on_wait = [this](const std::string& device) {
      EXPECT_EQ(device, "cpu:0");
      ++waits_;
      if (lets_go_) device_.LetCopiesGo();
    };
    return options;
  }

  std::atomic<bool> lets_go_{false};
  std::atomic<int> waits_{0};
  std::unique_ptr<TestDaemon> daemon_;
  FakeDevice& device_;
  Client client_{daemon_->address()};
  std::unique_ptr<Stream> stream_ = client_.Connect();
  uint64_t write_ = 0;
};

TEST(Shutdown, AnUploadToTheDeviceIsAnswered) {
  HeldCopy held(kGrace);
  held.LetGoWhenWaitedFor();
  std::thread stop([&] { EXPECT_TRUE(held.daemon().daemon().Stop(kGrace)); });
  EXPECT_FALSE(held.stream().Answer(held.write()).has_error());
  EXPECT_EQ(held.stream().End().error_code(), grpc::UNAVAILABLE);
  stop.join();
  EXPECT_EQ(held.waits(), 1);
}

TEST(Shutdown, CopiesThatOutlastItAreWaitedFor) {
  HeldCopy held(/*flush_time=*/absl::ZeroDuration());
  // It waits for the upload and is cancelled, but the end of the upload will still call it.
  std::thread downloader([&] {
    std::string data;
    EXPECT_FALSE(held.client().Download(3, held.write(), &data).ok());
  });
  ASSERT_TRUE(Eventually([&] {
    const std::string metrics = held.daemon().daemon().MetricsText();
    return metrics.find("kiln_host_memory_bytes{use=\"transfers\"} 0\n") == std::string::npos;
  }));
  EXPECT_FALSE(held.daemon().daemon().Stop(absl::ZeroDuration()));
  downloader.join();
  EXPECT_EQ(held.waits(), 1);
  held.LetGoWhenWaitedFor();
  held.DestroyDaemon();
  EXPECT_EQ(held.waits(), 2);
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
  // A socket that a killed daemon left behind.
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
  // A file that is not a socket must not be removed.
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
  EXPECT_THAT(std::string(daemon.status().message()),
              HasSubstr("no device was found named cuda:3"));
}

}  // namespace
}  // namespace kiln::testing
