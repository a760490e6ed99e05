// A device that holds its lists as long as a test wants.
#ifndef KILN_SERVER_RUNTIME_TESTING_HELD_DEVICE_H_
#define KILN_SERVER_RUNTIME_TESTING_HELD_DEVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "server/testing/faulty_device.h"

namespace kiln::testing {

// Must outlive the device.
class HeldDevice {
 public:
  // `watch` is called before each command, after it is let go.
  explicit HeldDevice(std::function<void(const drivers::Command&)> watch = nullptr)
      : watch_(std::move(watch)) {}

  std::unique_ptr<drivers::Device> Wrap(std::unique_ptr<drivers::Device> device) {
    return std::make_unique<FaultyDevice>(std::move(device),
                                          [this](const drivers::Command& command) {
                                            Pass(command);
                                            return absl::OkStatus();
                                          });
  }
  // Holds the device from the next command on, until LetGo. Call once.
  void Hold() { is_held_ = true; }
  void AwaitList() { has_come_.WaitForNotification(); }
  void LetGo() { go_on_.Notify(); }

 private:
  void Pass(const drivers::Command& command) {
    if (is_held_) {
      if (!has_come_.HasBeenNotified()) has_come_.Notify();
      go_on_.WaitForNotification();
    }
    if (watch_) watch_(command);
  }

  const std::function<void(const drivers::Command&)> watch_;
  std::atomic<bool> is_held_ = false;
  absl::Notification has_come_;
  absl::Notification go_on_;
};

}  // namespace kiln::testing

#endif  // KILN_SERVER_RUNTIME_TESTING_HELD_DEVICE_H_
