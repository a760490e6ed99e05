// Checks that a device still computes: at intervals a tiny program runs on it, as users' programs
// do, and its result is compared. A driver reports a device as healthy that hangs or has damaged
// memory until it is used.
#ifndef KILN_SERVER_RUNTIME_HEALTH_HEALTH_PROBE_H_
#define KILN_SERVER_RUNTIME_HEALTH_HEALTH_PROBE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/buffers/account.h"
#include "server/fairness/fair_queue.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/program/bound_program.h"

namespace kiln::runtime {

// Thread-safe. Shared: a running probe keeps it alive.
//
// ManagedDevice acts on the verdicts. Wrong numbers: Condemn. No answer within `patience`:
// SetUnresponsive, until it answers. A probe that fails is no verdict: the failed run has already
// asked the device for its health (ManagedDevice::AfterFailure).
class HealthProbe : public std::enable_shared_from_this<HealthProbe> {
 public:
  struct Options {
    ManagedDevice* device = nullptr;  // outlives this, as does `programs`
    ProgramCache* programs = nullptr;
    absl::Duration interval = absl::Seconds(10);
    // Time without any end of work on the device, while the probe is queued, after which it is
    // unresponsive. To this is added `longest_run` on a device that stops lists, else twice the
    // predicted time of the work in flight.
    absl::Duration patience = absl::Minutes(1);
    // On a device that stops lists, work fails with RUN_TOO_LONG if nothing has ended for longer.
    // Such a device is not considered hung while it may be running such work.
    absl::Duration longest_run = absl::InfiniteDuration();
  };
  explicit HealthProbe(Options options);
  ~HealthProbe();

  // Begins a probe if it is due, and checks whether the current one takes too long. Does not wait.
  void Tick(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using BoundPointer = std::shared_ptr<const BoundProgram>;

  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin();
  void StopRuns();
  void Queue(const BoundPointer& program);
  absl::StatusOr<std::shared_ptr<buffers::Value>> MakeInput(const std::vector<float>& values);
  void Compare(const std::shared_ptr<buffers::Value>& result, const std::vector<float>& expected);
  // Ends the probe: OK, DATA_LOSS for wrong numbers, or the reason why there was no result.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const fairness::FairQueue::FlowId flow_;
  const std::shared_ptr<buffers::Account> account_ = std::make_shared<buffers::Account>();
  absl::Mutex mutex_;
  bool under_way_ ABSL_GUARDED_BY(mutex_) = false;
  bool overdue_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time queued_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // InfinitePast: queued, no
                                                                        // Tick since
  uint32_t number_ ABSL_GUARDED_BY(mutex_) = 0;                         // of the probe
  // The time of the Tick that last noticed an end of work on the device.
  absl::Time last_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  double device_seconds_then_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_HEALTH_HEALTH_PROBE_H_
