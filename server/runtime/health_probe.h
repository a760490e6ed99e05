// Whether a device still computes: now and then a tiny program runs there as users' programs do,
// and somebody looks at what comes out. A driver says "healthy" of a device that hangs, or whose
// memory is damaged, until somebody tries it.
#ifndef KILN_SERVER_RUNTIME_HEALTH_PROBE_H_
#define KILN_SERVER_RUNTIME_HEALTH_PROBE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/buffers/account.h"
#include "server/fairness/fair_queue.h"
#include "server/runtime/bound_program.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program_cache.h"

namespace kiln::runtime {

// Thread-safe. Shared: a probe that is under way keeps it.
//
// The verdicts are ManagedDevice's to act on. Wrong numbers: Condemn. No answer within `patience`:
// SetUnresponsive, until it answers. A probe that fails says nothing of the device, which Run has
// asked by then (ManagedDevice::AfterFailure).
class HealthProbe : public std::enable_shared_from_this<HealthProbe> {
 public:
  struct Options {
    ManagedDevice* device = nullptr;  // outlives this, as do
    ProgramCache* programs = nullptr;
    absl::Duration interval = absl::Seconds(10);
    // While nothing ends on the device, though the program is queued; and twice what is predicted
    // of the kernels that are there.
    absl::Duration patience = absl::Minutes(1);
    // What has run for longer, and nothing has ended meanwhile, fails with RUN_TOO_LONG, on a
    // device that stops lists. Such a device does not hang as long as it may be running one.
    absl::Duration longest_run = absl::InfiniteDuration();
  };
  explicit HealthProbe(Options options);
  ~HealthProbe();

  // Begins a probe if it is time, and judges one that takes too long. Does not wait.
  void Tick(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using BoundPointer = std::shared_ptr<const BoundProgram>;

  void Begin();
  void StopRuns();
  void Queue(const BoundPointer& program);
  absl::StatusOr<std::shared_ptr<buffers::Value>> MakeInput(const std::vector<float>& values);
  void Compare(const std::shared_ptr<buffers::Value>& result, const std::vector<float>& expected);
  // The probe has ended: OK, DATA_LOSS for wrong numbers, or why there was none.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const fairness::FairQueue::FlowId flow_;
  const std::shared_ptr<buffers::Account> account_ = std::make_shared<buffers::Account>();
  absl::Mutex mutex_;
  bool under_way_ ABSL_GUARDED_BY(mutex_) = false;
  bool overdue_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time queued_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // no earlier than now
  uint32_t number_ ABSL_GUARDED_BY(mutex_) = 0;                         // of the probe
  // When Tick last saw that something had ended on the device.
  absl::Time last_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  double device_seconds_then_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_HEALTH_PROBE_H_
