// The clocks of a stand-in's devices.
#ifndef KILN_TESTS_STAND_INS_DEVICE_TIME_H_
#define KILN_TESTS_STAND_INS_DEVICE_TIME_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace kiln::stand_ins {

// Real time, or simulated time that advances only by the duration that a test sets for each
// command; nothing waits for it. Thread-safe.
class DeviceTime {
 public:
  // From now on a launch takes `launch_milliseconds`, and a copy or fill `copy_milliseconds`.
  void Simulate(int launch_milliseconds, int copy_milliseconds = 0) {
    launch_milliseconds_ = launch_milliseconds;
    copy_milliseconds_ = copy_milliseconds;
    simulated_ = true;
  }
  void ShowRealTime() { simulated_ = false; }

  // For the stand-in: reads the clocks, and reports that a command has run.
  int64_t Nanoseconds() const {
    if (simulated_) return nanoseconds_;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
  void HasLaunched() { nanoseconds_ += launch_milliseconds_ * int64_t{1'000'000}; }
  void HasCopied() { nanoseconds_ += copy_milliseconds_ * int64_t{1'000'000}; }

 private:
  std::atomic<bool> simulated_ = false;
  std::atomic<int> launch_milliseconds_ = 0;
  std::atomic<int> copy_milliseconds_ = 0;
  std::atomic<int64_t> nanoseconds_ = 0;
};

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_DEVICE_TIME_H_
