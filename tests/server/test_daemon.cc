#include "tests/server/test_daemon.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"

namespace kiln::testing {

constexpr absl::Duration kLeaseCheck = absl::Milliseconds(5);
// The steady clock starts at another value, so that the clocks cannot be confused.
constexpr int64_t kSteadyStart = 900'000;

TestDaemon::TestDaemon(TestDaemonOptions options) : options_(std::move(options)) {
  std::string pattern = "/tmp/kiln_test_XXXXXX";
  folder_ = mkdtemp(pattern.data());
  address_ = absl::StrCat("unix:", folder_, "/kilnd.sock");
  config_.listen = {address_, "127.0.0.1:0"};
  config_.metrics_listen = "127.0.0.1:0";
  config_.health_interval_seconds = 0;  // tests count programs and runs
  config_.idle_tuning = false;          // and searches
  config_.ping_answer_seconds = 3600;   // a slow machine must not lose connections
  config_.cache_folder = absl::StrCat(folder_, "/cache");
  config_.state_folder = absl::StrCat(folder_, "/state");
  config_.blob_limit_bytes = options_.blob_limit_bytes;
  options_.configure(config_);
  if (options_.before_start) {
    std::filesystem::create_directory(config_.state_folder);
    std::filesystem::permissions(config_.state_folder, std::filesystem::perms::owner_all);
    options_.before_start(config_.state_folder);
  }
  Start();
}

void TestDaemon::Restart(Daemon::Sessions sessions, const std::function<void()>& before_end,
                         absl::Duration grace) {
  daemon_->Stop(grace, sessions);
  if (before_end) before_end();
  daemon_.reset();
  devices_.clear();
  Start();
}

void TestDaemon::Start() {
  DaemonParts parts;
  if (options_.driver != nullptr) {
    parts.drivers.push_back(std::move(options_.driver));
  } else {
    std::vector<std::unique_ptr<drivers::Device>> devices;
    for (int i = 0; i < options_.devices; ++i) {
      auto device = std::make_unique<FakeDevice>(absl::StrCat("cpu:", i), options_.memory_bytes);
      devices_.push_back(device.get());
      options_.prepare(*device);
      devices.push_back(std::move(device));
    }
    parts.drivers.push_back(std::make_unique<FakeDriver>(std::move(devices)));
  }
  parts.compile = options_.compile ? options_.compile : FakeCompile;
  parts.disassemble = [](const drivers::KernelImage& image, const drivers::Target&) {
    return absl::StatusOr<std::string>(absl::StrCat("nop ; ", image.code));
  };
  parts.clock = {.wall = [this] { return absl::FromUnixSeconds(seconds_ + wall_step_); },
                 .steady = [this] { return absl::FromUnixSeconds(seconds_ - kSteadyStart); }};
  parts.make_trial_runner = options_.make_trial_runner;
  parts.compile_candidate = options_.compile_candidate;
  parts.lease_check_interval = kLeaseCheck;
  parts.copy_timeout = options_.copy_timeout;
  parts.flush_time = options_.flush_time;
  parts.on_wait = options_.on_wait;
  auto daemon = Daemon::Start(config_, std::move(parts));
  if (!daemon.ok()) {
    ADD_FAILURE() << daemon.status();
    std::abort();
  }
  daemon_ = std::move(*daemon);
}

TestDaemon::~TestDaemon() {
  daemon_.reset();
  std::filesystem::remove_all(folder_);
}

void TestDaemon::Advance(absl::Duration duration) {
  seconds_ += absl::ToInt64Seconds(duration);
  WaitForRound();
}

void TestDaemon::StepWallClock(absl::Duration step) {
  wall_step_ += absl::ToInt64Seconds(step);
  WaitForRound();
}

void TestDaemon::WaitForRound() {
  // A round may be in progress.
  const int64_t before = daemon_->rounds();
  EXPECT_TRUE(Eventually([&] { return daemon_->rounds() > before + 1; }))
      << "the daemon's upkeep does not go round";
}

std::filesystem::path KeptFile(const TestDaemon& daemon) {
  for (const auto& entry : std::filesystem::directory_iterator(daemon.folder() + "/state/sessions"))
    if (entry.path().extension() == ".session") return entry.path();
  return {};
}

std::string AuditText(const TestDaemon& daemon) {
  std::ostringstream text;
  text << std::ifstream(daemon.folder() + "/state/audit.jsonl").rdbuf();
  return text.str();
}

}  // namespace kiln::testing
