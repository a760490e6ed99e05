// Searches for schedules while users do nothing.
#ifndef KILN_SERVER_TUNER_IDLE_TUNER_H_
#define KILN_SERVER_TUNER_IDLE_TUNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/workers/kernel_compiler.h"
#include "server/clock/clock.h"
#include "server/clock/day_hours.h"
#include "server/fairness/host_work.h"
#include "server/memory/host_memory.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/thread_pool.h"
#include "server/tuner/idle_policy.h"
#include "server/tuner/kernel_use.h"
#include "server/tuner/setting_store.h"
#include "server/tuner/tuner.h"

namespace kiln::tuner {

// Searches kernels one at a time, those first on which users spend most device time, and those not
// that were searched with this width before. idle_policy.h decides when. One thread looks, at
// intervals and as soon as users' work comes to the device of a search or to the host, and another
// one searches. A search gives up its memory of the device, and pauses, when a user's allocation
// needs it.
//
// Holds the texts of KernelUse and, during a search, what Tuner and its runner hold: the process of
// the trials, which ends when the search pauses. Kernels whose arguments take more than an eighth
// of their device's memory are not searched.
//
// Thread-safe.
class IdleTuner {
 public:
  struct Options {
    Tuner* tuner = nullptr;
    SettingStore* store = nullptr;
    std::vector<runtime::ManagedDevice*> devices;
    // Adds what users have used since its last call: KernelUse::Look with the programs in memory.
    std::function<void(KernelUse&)> look_at_programs;
    // Compiles candidates so that nothing else on the machine waits for it. Null: the tuner's
    // function.
    workers::CompileFunction compile;
    // Users' compilations and uploads. This becomes its observer.
    fairness::HostWork* host_work = nullptr;
    // Pays for the results that are compared (TuneOptions::host). A kernel for which it has too
    // little counts as one whose search has failed. Null: they are not charged.
    std::shared_ptr<memory::Account> host;
    Clock clock;
    DayHours hours;
    absl::TimeZone zone = absl::LocalTimeZone();
    absl::Duration quiet = absl::Minutes(1);
    int width = 4;
    double kernel_seconds_max = 900;                    // of one search, without pauses
    absl::Duration interval = absl::Milliseconds(250);  // between two looks
  };

  // Starts the threads. Requires: nothing was queued on the devices yet, whose observers this
  // becomes. Everything in the options outlives this, and nothing is queued on the devices while it
  // is destroyed.
  explicit IdleTuner(Options options);
  ~IdleTuner();

  // Ends a search soon, and begins no other. Does not wait for it. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Search {
    size_t device = 0;
    std::shared_ptr<TuningControl> control;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if something was done, so that it is worth looking again.
  bool Look() ABSL_LOCKS_EXCLUDED(mutex_);
  void LookAtPrograms(absl::Time now);
  IdleState StateAt(absl::Time now) const;
  std::optional<KernelUse::Used> NextOn(const runtime::ManagedDevice& device) const;
  bool IsSearchable(const KernelToTune& kernel) const;
  void Begin(size_t device) ABSL_LOCKS_EXCLUDED(mutex_);
  void Pause(absl::Time now);
  void Resume(absl::Time now);
  // The search ends soon.
  void End();
  // On the thread that searches.
  void SearchKernel(const KernelUse::Used& used, const TuneOptions& options,
                    std::unique_ptr<Tuner::Claim> claim) ABSL_LOCKS_EXCLUDED(mutex_);
  // Users' work came to a device or to the host.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  // The search has given up its memory.
  void HasYielded() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;

  // Used by the thread that looks, only.
  KernelUse use_;
  absl::Time next_programs_ = absl::InfinitePast();
  // By device, as of the last look at the programs or the last search.
  std::vector<std::optional<KernelUse::Used>> next_;
  bool is_next_known_ = false;
  std::optional<Search> search_;

  std::atomic<bool> wants_wake_{false};  // a search runs, and is not paused
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_yielded_{false};  // and has to be paused
  // The kernel whose search has ended and needs no other one; without a kernel if it was cut short.
  struct Ended {
    std::optional<KernelToTune> searched;
  };
  std::optional<Ended> ended_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<runtime::ThreadPool> searcher_;
  std::thread looker_;  // last: it uses the other members
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_IDLE_TUNER_H_
