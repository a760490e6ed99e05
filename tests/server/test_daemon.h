// A daemon in this process with its own socket, cache folder, clock and devices, which are mostly
// fake.
#ifndef KILN_TESTS_SERVER_TEST_DAEMON_H_
#define KILN_TESTS_SERVER_TEST_DAEMON_H_

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/daemon.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::testing {

struct TestDaemonOptions {
  int devices = 1;
  int64_t memory_bytes = 1 << 20;  // of each device
  int64_t blob_limit_bytes = 1 << 20;
  runtime::CompileFunction compile{};  // FakeCompile if empty
  std::function<void(config::Config&)> configure = [](config::Config&) {};
  // Called with the state folder before the first daemon starts in it.
  std::function<void(const std::string& state_folder)> before_start{};
  // Called with each fake device before its daemon starts, also after a restart.
  std::function<void(FakeDevice&)> prepare = [](FakeDevice&) {};
  absl::Duration copy_timeout = absl::Minutes(1);
  // See DaemonParts. By default clients have unlimited time to read their answers.
  absl::Duration flush_time = absl::Hours(1);
  std::function<void(const std::string& device)> on_wait{};
  // Its devices replace the fake ones. Requires a `compile`.
  std::unique_ptr<drivers::Driver> driver = nullptr;
  // As in DaemonParts.
  tuner::MakeTrialRunner make_trial_runner{};
  workers::CompileFunction compile_candidate{};
};

class TestDaemon {
 public:
  explicit TestDaemon(TestDaemonOptions options = {});
  ~TestDaemon();

  const std::string& address() const { return address_; }  // unix:…
  const std::string& folder() const { return folder_; }
  FakeDevice& device(int index = 0) { return *devices_[index]; }
  Daemon& daemon() { return *daemon_; }
  config::Config& config() { return config_; }
  // Stops the daemon and starts another one, with new devices, in the same folder. `before_end`, if
  // any, is called once the sessions have been saved or closed. If a device is held, `grace` must
  // be zero, or the daemon waits for it. Requires: `driver` is not set.
  void Restart(Daemon::Sessions sessions = Daemon::Sessions::kKeep,
               const std::function<void()>& before_end = nullptr,
               absl::Duration grace = absl::Hours(1));
  // Sets the memory of the next daemon's devices.
  void set_memory_bytes(int64_t bytes) { options_.memory_bytes = bytes; }
  // Moves both clocks, and waits until the daemon has read them.
  void Advance(absl::Duration duration);
  // The same for the wall clock only, as if an administrator set it.
  void StepWallClock(absl::Duration step);

 private:
  void Start();
  void WaitForRound();

  TestDaemonOptions options_;
  std::string folder_;
  std::string address_;
  config::Config config_;
  std::vector<FakeDevice*> devices_;
  std::atomic<int64_t> seconds_{1'000'000};
  std::atomic<int64_t> wall_step_{0};
  std::unique_ptr<Daemon> daemon_;
};

// The one session that the previous daemon has saved and that has not been restored; empty if there
// is none.
std::filesystem::path KeptFile(const TestDaemon& daemon);

// The whole audit log of the daemon.
std::string AuditText(const TestDaemon& daemon);

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_TEST_DAEMON_H_
