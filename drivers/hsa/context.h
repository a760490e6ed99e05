// What HSA has for one device: its memory, a queue, and signals. And whether it is lost.
#ifndef KILN_DRIVERS_HSA_CONTEXT_H_
#define KILN_DRIVERS_HSA_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/hsa/device_query.h"
#include "drivers/hsa/library.h"
#include "drivers/hsa/packet.h"

namespace kiln::drivers::hsa {

// The most packets of a queue; the device may allow fewer.
inline constexpr uint32_t kQueuePacketsMax = 4096;

// Thread-safe. Whoever holds memory or a signal of it shares it.
class Context {
 public:
  // The errors of making a queue. `peers`: devices that its memory is opened to where the hardware
  // lets them.
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> hsa,
                                                       const DeviceFacts& facts,
                                                       std::vector<hsa_agent_t> peers);
  // Ends the queue. No packet is left that was not processed, unless the device is lost.
  ~Context();

  const Library& hsa() const { return *hsa_; }
  const std::shared_ptr<const Library>& shared_hsa() const { return hsa_; }
  const DeviceFacts& facts() const { return facts_; }
  hsa_agent_t agent() const { return facts_.agent; }
  hsa_agent_t host() const { return facts_.host; }

  // The device's own memory; null if there is none.
  void* AllocateMemory(int64_t bytes);
  // The host's, which both reach at the same address; null if there is none.
  void* AllocateHostMemory(int64_t bytes);
  void ReleaseMemory(void* memory) const;
  // Whether lists of that device may use this one's memory.
  bool IsOpenTo(hsa_agent_t agent) const;

  // A signal of this value, used before perhaps.
  absl::StatusOr<hsa_signal_t> TakeSignal(hsa_signal_value_t value);
  // The device has counted it down to 0, or is lost.
  void GiveBack(hsa_signal_t signal);
  // Until it is below `value`: OK; or why the device is lost.
  absl::Status Await(hsa_signal_t signal, hsa_signal_value_t value = 1);

  // Puts packets at the end of the queue and has the device look; waits while the queue is full.
  // The error of a lost device.
  absl::Status Push(absl::Span<const Packet> packets);

  // Has kernels and copies from now on leave their times, which are in seconds, 0 if the runtime
  // does not say.
  void StartTiming();
  double DispatchSeconds(hsa_signal_t signal) const;
  double CopySeconds(hsa_signal_t signal) const;

  // OK, or why the device is lost.
  absl::Status Health() const;
  // Whether the queue takes a packet and ends it; if not, the device is lost.
  absl::Status Try();
  absl::Status Lose(absl::string_view why);

 private:
  Context(std::shared_ptr<const Library> hsa, const DeviceFacts& facts)
      : hsa_(std::move(hsa)), facts_(facts) {}
  absl::Status AwaitFor(hsa_signal_t signal, hsa_signal_value_t below, double seconds_max);
  absl::Status AwaitRoom(uint64_t end);
  void Write(uint64_t index, absl::Span<const Packet> packets);
  double Seconds(uint64_t begin, uint64_t end) const;

  const std::shared_ptr<const Library> hsa_;
  const DeviceFacts facts_;
  std::vector<hsa_agent_t> open_to_;  // with the device itself, in front
  hsa_queue_t* queue_ = nullptr;

  absl::Mutex push_mutex_;  // for the order of what several threads push

  mutable absl::Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  bool timing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<hsa_signal_t> signals_ ABSL_GUARDED_BY(mutex_);  // idle
};

// A signal that goes back to its context.
class Signal {
 public:
  Signal() = default;
  Signal(Context* context, hsa_signal_t signal) : context_(context), signal_(signal) {}
  Signal(Signal&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), signal_(other.signal_) {}
  Signal& operator=(Signal&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(signal_, other.signal_);
    return *this;
  }
  ~Signal() {
    if (context_ != nullptr) context_->GiveBack(signal_);
  }
  hsa_signal_t get() const { return signal_; }

 private:
  Context* context_ = nullptr;
  hsa_signal_t signal_ = {};
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_CONTEXT_H_
