// A device with all that the daemon adds: a memory pool, a queue, its health, and memory for
// intermediate results.
#ifndef KILN_SERVER_RUNTIME_DEVICE_MANAGED_DEVICE_H_
#define KILN_SERVER_RUNTIME_DEVICE_MANAGED_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "drivers/interface/device.h"
#include "server/buffers/pool.h"
#include "server/clock/clock.h"
#include "server/fairness/dispatcher.h"
#include "server/metrics/metrics.h"
#include "server/runtime/device/arenas.h"
#include "server/trace/recorder.h"

namespace kiln::runtime {

enum class Health { kHealthy, kDraining, kFailed };

// Thread-safe.
class ManagedDevice {
 public:
  // Called without locks held, after the health has changed.
  using HealthObserver = std::function<void(const ManagedDevice&)>;

  // `memory_limit` in bytes; 0: all of the device's. `metrics` and `trace_recorder` outlive
  // this; the latter may be null.
  ManagedDevice(std::unique_ptr<drivers::Device> device, int64_t memory_limit,
                metrics::DeviceMetrics* metrics, Clock clock, fairness::QueueLimits limits = {},
                trace::Recorder* trace_recorder = nullptr);
  // Waits until all work on the device has ended.
  ~ManagedDevice();

  const std::string& name() const { return device_->info().name; }
  const Clock& clock() const { return clock_; }
  drivers::Device& device() { return *device_; }
  const drivers::DeviceInfo& info() const { return device_->info(); }
  const std::shared_ptr<buffers::Pool>& pool() const { return pool_; }
  // Waits until no list or copy is running and the device is not held; returns false on timeout.
  bool WaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(holds_mutex_);
  // Keeps the device from being idle, and so from being revived, while other devices may still read
  // its memory after its own lists have ended. Each Hold needs one Release. After Release the
  // device may be destroyed.
  void Hold() ABSL_LOCKS_EXCLUDED(holds_mutex_);
  void Release() ABSL_LOCKS_EXCLUDED(holds_mutex_);
  fairness::Dispatcher& dispatcher() { return dispatcher_; }
  const fairness::Dispatcher& dispatcher() const { return dispatcher_; }
  metrics::DeviceMetrics& metrics() { return *metrics_; }
  // Records what the device does; may be null.
  trace::Recorder* trace_recorder() const { return trace_recorder_; }

  Arenas& arenas() { return arenas_; }

  Health health() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The reason for a failure or unresponsiveness; empty otherwise.
  std::string health_message() const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK, or UNAVAILABLE: the device has failed or, for new work only, is draining or unresponsive.
  absl::Status CheckUsable(bool new_work) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetDraining(bool draining) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called after a list, a copy or an allocation ended with `error`. Asks the device for its
  // health. If the device is lost, all later work on it fails with the returned UNAVAILABLE error.
  // Otherwise returns `error`.
  absl::Status AfterFailure(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks the device for its health as AfterFailure does, although nothing has failed.
  void CheckHealth() { AfterFailure(absl::OkStatus()).IgnoreError(); }
  // Called by HealthProbe for a device that computes wrong numbers. All work on it fails from now
  // on, until the daemon restarts: no result is better than a wrong one.
  void Condemn(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called by HealthProbe for a device that does not answer: it gets no new sessions and programs,
  // but continues what it has begun. Empty: it answers again.
  void SetUnresponsive(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tries to revive a failed device on which nothing runs any more; returns true if it works again.
  // Values, arenas and loaded programs are then lost: the pool begins a new life.
  bool TryRevive() ABSL_LOCKS_EXCLUDED(mutex_);
  // The observer is also called at once with the current health.
  void SetHealthObserver(HealthObserver observer) ABSL_LOCKS_EXCLUDED(report_mutex_);

  // Returns the share of time in which programs ran, 0 to 1, between the last two calls that were
  // at least a second apart.
  double Utilization(absl::Time steady_now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void ReportHealth() ABSL_LOCKS_EXCLUDED(report_mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FailedBecause(absl::string_view why) const;

  const std::unique_ptr<drivers::Device> device_;
  const std::shared_ptr<buffers::Pool> pool_;
  Arenas arenas_;
  metrics::DeviceMetrics* const metrics_;
  trace::Recorder* const trace_recorder_;
  const Clock clock_;
  fairness::Dispatcher dispatcher_;
  absl::Mutex holds_mutex_;
  int64_t holds_ ABSL_GUARDED_BY(holds_mutex_) = 0;
  // Held while the observer is called, before mutex_: so its last call reports the latest health.
  absl::Mutex report_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  HealthObserver observer_ ABSL_GUARDED_BY(report_mutex_);
  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool condemned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status unresponsive_ ABSL_GUARDED_BY(mutex_);
  absl::Time utilization_since_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  double seconds_then_ ABSL_GUARDED_BY(mutex_) = 0;
  double utilization_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_DEVICE_MANAGED_DEVICE_H_
