// HSA's objects for one device: its memory, a queue and signals; and whether the device is lost.
#ifndef KILN_DRIVERS_HSA_CONTEXT_H_
#define KILN_DRIVERS_HSA_CONTEXT_H_

#include <cstddef>
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
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/hsa/device_query.h"
#include "drivers/hsa/library.h"
#include "drivers/hsa/packet.h"

namespace kiln::drivers::hsa {

// The size of a queue in packets; the device may allow less.
inline constexpr uint32_t kQueuePacketsMax = 4096;

class Context;

// One of a context's signals, which the device decrements to 0. Requires: it has, or is lost, when
// the signal is destroyed; the context outlives it.
class Signal : public Completion {
 public:
  Signal() = default;
  Signal(Context* context, hsa_signal_t signal) : context_(context), signal_(signal) {}
  Signal(Signal&& other) noexcept { *this = std::move(other); }
  Signal& operator=(Signal&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(signal_, other.signal_);
    return *this;
  }
  ~Signal() override;
  hsa_signal_t get() const { return signal_; }
  absl::Status Await() override;

 private:
  Context* context_ = nullptr;
  hsa_signal_t signal_ = {};
};

class Context : public DeviceContext {
 public:
  // Errors: those of creating a queue. `peers`: devices that get access to its memory where the
  // hardware allows it.
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> hsa,
                                                       const DeviceFacts& facts,
                                                       std::vector<hsa_agent_t> peers);
  // Destroys the queue. Requires: all packets have been processed, or the device is lost.
  ~Context() override;

  const Library& hsa() const { return *hsa_; }
  const std::shared_ptr<const Library>& shared_hsa() const { return hsa_; }
  const DeviceFacts& facts() const { return facts_; }
  hsa_agent_t agent() const { return facts_.agent; }
  hsa_agent_t host() const { return facts_.host; }

  void* AllocateMemory(int64_t bytes) override;
  void ReleaseMemory(void* memory) override;
  absl::StatusOr<char*> AllocateHostMemory(size_t bytes) override;
  void ReleaseHostMemory(char* memory) override { ReleaseMemory(memory); }
  // Whether lists of that device may use this one's memory.
  bool IsOpenTo(hsa_agent_t agent) const;

  // A signal with this value; reuses returned ones.
  absl::StatusOr<Signal> TakeSignal(hsa_signal_value_t value);
  // Requires: the signal was taken and is not given back twice.
  void GiveBack(hsa_signal_t signal);
  // Blocks until the signal is below `value` (OK) or the device is lost (the reason).
  absl::Status Await(hsa_signal_t signal, hsa_signal_value_t value = 1);

  // Appends packets to the queue and rings its doorbell; waits while the queue is full. Returns the
  // error of a lost device.
  absl::Status Push(absl::Span<const Packet> packets);

  // From this call on, kernels and copies record their times, in seconds; 0 if the runtime does not
  // report them.
  void StartTiming();
  double DispatchSeconds(hsa_signal_t signal) const;
  double CopySeconds(hsa_signal_t signal) const;

  // The error for a failed HSA call (`what` as for ToStatus): UNAVAILABLE if the device is lost.
  absl::Status Failure(absl::string_view what, hsa_status_t code) const;
  // Checks that the queue processes a packet.
  absl::Status Try() override;

 private:
  Context(std::shared_ptr<const Library> hsa, const DeviceFacts& facts)
      : hsa_(std::move(hsa)), facts_(facts) {}
  // Checks that no idle signal is kept twice.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitFor(hsa_signal_t signal, hsa_signal_value_t below, double seconds_max);
  absl::Status AwaitRoom(uint64_t end);
  // Requires: the queue has room for `packets`, of which there is at least one.
  void Write(uint64_t index, absl::Span<const Packet> packets);
  double Seconds(uint64_t begin, uint64_t end) const;

  const std::shared_ptr<const Library> hsa_;
  const DeviceFacts facts_;
  std::vector<hsa_agent_t> open_to_;  // includes the device itself, first
  hsa_queue_t* queue_ = nullptr;

  absl::Mutex push_mutex_;  // keeps each thread's packets together

  mutable absl::Mutex mutex_;
  bool timing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<hsa_signal_t> signals_ ABSL_GUARDED_BY(mutex_);  // idle
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_CONTEXT_H_
