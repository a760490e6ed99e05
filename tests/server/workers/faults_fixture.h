// A daemon in this process with the real compiler. Its workers run this executable, whose main adds
// the faults to them. Clients make it compile kernels that crash, hang or exhaust a worker.
#ifndef KILN_TESTS_SERVER_WORKERS_FAULTS_FIXTURE_H_
#define KILN_TESTS_SERVER_WORKERS_FAULTS_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/daemon_parts.h"
#include "tests/eventually.h"
#include "tests/server/client.h"

namespace kiln::testing {

// Sizes of vectors that nothing else uses; each selects a fault.
inline constexpr int64_t kAborts = 10007;
inline constexpr int64_t kSpins = 10009;
inline constexpr int64_t kEats = 10037;
inline constexpr int64_t kAbortsWithSettings = 10039;

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/kiln_test_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    address_ = absl::StrCat("unix:", folder_, "/kilnd.sock");
  }
  void TearDown() override {
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Adds the drivers of a test's own devices.
  virtual void AddDrivers(config::Config*, DaemonParts*) {}

  // Starts the daemon. `seconds_limit` is a kernel's compile time by a clock that only Advance
  // moves.
  void Start(int seconds_limit) {
    config::Config config;
    config.listen = {address_};
    config.cache_folder = folder_ + "/cache";
    config.state_folder = folder_ + "/state";
    config.devices = {"cpu"};
    config.cpu_threads = 1;
    config.health_interval_seconds = 0;  // a stand-in computes nothing; tests count programs
    config.compile_seconds_limit = seconds_limit;
    config.compile_memory_limit_bytes = 256 << 20;
    auto parts = ProductionParts(config);
    ASSERT_TRUE(parts.ok()) << parts.status();
    parts->steady_now = [this] {
      return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds_));
    };
    AddDrivers(&config, &*parts);
    auto daemon = Daemon::Start(config, *std::move(parts));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  void Advance(int seconds) { seconds_ += seconds; }

  // Makes a client define a program that cannot be compiled, and then one that can. `meanwhile` is
  // called while the first one is compiled.
  std::string ErrorOf(
      const v1::Graph& graph, const std::string& device = "",
      const std::function<void()>& meanwhile = [] {}) {
    Client client(address_, 0, device);
    auto stream = client.Connect();
    const uint64_t define = stream->Send(Define(1, graph));
    meanwhile();
    const v1::Result failed = stream->Answer(define);
    EXPECT_TRUE(failed.has_error());
    EXPECT_FALSE(stream->Call(Define(2, AddGraph(++next_size_))).has_error());
    return failed.error().message();
  }

  std::string folder_;
  std::string address_;
  std::unique_ptr<Daemon> daemon_;
  int64_t next_size_ = 20;
  std::atomic<int64_t> seconds_{0};
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_WORKERS_FAULTS_FIXTURE_H_
