// Lists of several devices that read at every step what all of them have just written.
#ifndef KILN_DRIVERS_CPU_TESTING_EXCHANGES_H_
#define KILN_DRIVERS_CPU_TESTING_EXCHANGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/interface/buffer.h"
#include "drivers/interface/command_list.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {

// Each device waits for the others in a different order.
class Exchanges {
 public:
  static constexpr int64_t kBytes = 64;

  Exchanges(int devices, int steps)
      : devices_(devices), steps_(steps), signals_(std::make_shared<Signals>(devices * steps)) {}

  const std::shared_ptr<Signals>& signals() const { return signals_; }
  int64_t published_bytes() const { return steps_ * kBytes; }
  int64_t read_bytes() const { return devices_ * steps_ * kBytes; }
  static uint8_t Value(int device, int step, int run) {
    return static_cast<uint8_t>(1 + device + 7 * step + 31 * run);
  }

  // Slot i is the buffer that device i publishes; the last slot is what this device has read.
  std::vector<Command> Commands(int device, int run) const {
    std::vector<Command> commands;
    for (int step = 0; step < steps_; ++step) {
      commands.push_back(FillCommand{{device, step * kBytes, kBytes}, Value(device, step, run)});
      commands.push_back(SignalCommand{step * devices_ + device});
      for (int i = 1; i < devices_; ++i) commands.push_back(WaitCommand{Of(device, i, step)});
      for (int i = 0; i < devices_; ++i) {
        const int64_t to = (step * devices_ + i) * kBytes;
        commands.push_back(CopyCommand{{i, step * kBytes, kBytes}, {devices_, to, kBytes}});
      }
    }
    return commands;
  }

  void Check(const Buffer& read, int run) const {
    const auto* bytes = static_cast<const uint8_t*>(read.host_pointer());
    for (int step = 0; step < steps_; ++step)
      for (int i = 0; i < devices_; ++i)
        for (int64_t byte : {int64_t{0}, kBytes - 1})
          ASSERT_EQ(bytes[(step * devices_ + i) * kBytes + byte], Value(i, step, run))
              << "step " << step << ", device " << i << ", run " << run;
  }

 private:
  // The i-th other device, counting forward on even devices and backward on odd ones.
  int Of(int device, int i, int step) const {
    const int other = (device + (device % 2 == 0 ? i : devices_ - i)) % devices_;
    return step * devices_ + other;
  }

  const int devices_, steps_;
  const std::shared_ptr<Signals> signals_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_TESTING_EXCHANGES_H_
