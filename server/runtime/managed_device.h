// A device with everything the daemon adds to it: its memory's pool, its queue, its health, and
// room for intermediate results.
#ifndef KILN_SERVER_RUNTIME_MANAGED_DEVICE_H_
#define KILN_SERVER_RUNTIME_MANAGED_DEVICE_H_

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
#include "server/runtime/arenas.h"

namespace kiln::runtime {

enum class Health { kHealthy, kDraining, kFailed };

// Thread-safe.
class ManagedDevice {
 public:
  // Called, without locks held, after the health has changed.
  using HealthObserver = std::function<void(const ManagedDevice&)>;

  // `memory_limit` in bytes; 0: all of the device's. `metrics` outlives this.
  ManagedDevice(std::unique_ptr<drivers::Device> device, int64_t memory_limit,
                metrics::DeviceMetrics* metrics, Clock clock, fairness::QueueLimits limits = {});
  // Waits until the device has ended everything.
  ~ManagedDevice();

  const std::string& name() const { return device_->info().name; }
  const Clock& clock() const { return clock_; }
  drivers::Device& device() { return *device_; }
  const drivers::DeviceInfo& info() const { return device_->info(); }
  const std::shared_ptr<buffers::Pool>& pool() const { return pool_; }
  // Waits until no list and no copy is under way and nobody holds the device; false if `timeout`
  // passes first.
  bool WaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(holds_mutex_);
  // For who may still read its memory from elsewhere when its own lists have ended: it is not idle,
  // and so not revived, before each Hold has had its Release, behind which it may be gone.
  void Hold() ABSL_LOCKS_EXCLUDED(holds_mutex_);
  void Release() ABSL_LOCKS_EXCLUDED(holds_mutex_);
  fairness::Dispatcher& dispatcher() { return dispatcher_; }
  const fairness::Dispatcher& dispatcher() const { return dispatcher_; }
  metrics::DeviceMetrics& metrics() { return *metrics_; }

  Arenas& arenas() { return arenas_; }

  Health health() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why it failed; empty otherwise.
  std::string health_message() const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK, or UNAVAILABLE: the device has failed or, for new work only, is draining.
  absl::Status CheckUsable(bool new_work) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetDraining(bool draining) ABSL_LOCKS_EXCLUDED(mutex_);
  // A list, a copy or an allocation ended with `error`. Asks the device how it is; if it is lost,
  // everything on it fails from here on with the UNAVAILABLE that is returned. Otherwise returns
  // `error`.
  absl::Status AfterFailure(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks the device how it is, as AfterFailure does, though nothing has failed.
  void CheckHealth() { AfterFailure(absl::OkStatus()).IgnoreError(); }
  // The verdicts of HealthProbe. Everything on a device that computes wrong numbers fails from here
  // on, as long as the daemon lives: a wrong number is worse than none.
  void Condemn(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // One that does not answer is given no new sessions and programs; what it has begun may go on.
  // Empty: it answers again.
  void SetUnresponsive(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // A failed device on which nothing runs any more is tried again; true if it works. Values, arenas
  // and what programs have loaded are then lost: the pool begins another life.
  bool TryRevive() ABSL_LOCKS_EXCLUDED(mutex_);
  // It is told the health there is at once.
  void SetHealthObserver(HealthObserver observer) ABSL_LOCKS_EXCLUDED(report_mutex_);

  // Share of the time between the last two calls, at least a second apart, in which programs ran: 0
  // to 1.
  double Utilization(absl::Time steady_now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void ReportHealth() ABSL_LOCKS_EXCLUDED(report_mutex_);
  absl::Status FailedBecause(absl::string_view why) const;

  const std::unique_ptr<drivers::Device> device_;
  const std::shared_ptr<buffers::Pool> pool_;
  Arenas arenas_;
  metrics::DeviceMetrics* const metrics_;
  const Clock clock_;
  fairness::Dispatcher dispatcher_;
  absl::Mutex holds_mutex_;
  int64_t holds_ ABSL_GUARDED_BY(holds_mutex_) = 0;
  // Held while the observer is told, before mutex_: what it hears last is what holds.
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

#endif  // KILN_SERVER_RUNTIME_MANAGED_DEVICE_H_
