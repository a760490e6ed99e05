// Searches the settings of a program's kernels, and stores what it finds.
#ifndef KILN_SERVER_TUNER_TUNER_H_
#define KILN_SERVER_TUNER_TUNER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/kernel/kernel.h"
#include "compiler/search/beam.h"
#include "compiler/workers/kernel_compiler.h"
#include "server/clock/clock.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/program_compiler.h"
#include "server/runtime/device/managed_device.h"
#include "server/tuner/cost_samples.h"
#include "server/tuner/device_rates.h"
#include "server/tuner/kernel_trials.h"
#include "server/tuner/kernels_of.h"
#include "server/tuner/setting_store.h"
#include "server/tuner/trial_runner.h"
#include "server/tuner/tuning_control.h"

namespace kiln::tuner {

// Makes what runs a kernel's candidates on the device. The kernel outlives the runner.
using MakeTrialRunner = std::function<absl::StatusOr<std::unique_ptr<TrialRunner>>(
    const kernel::Kernel&, runtime::ManagedDevice&)>;

enum class TuneState {
  kSearching,
  kFaster,    // a better setting was found and stored
  kKept,      // nothing faster was found
  kSearched,  // not searched: an earlier search was at least as wide
  kNoTime,    // not searched: the time was used up
  kFailed,    // `why`
};

struct TuneProgress {
  std::string kernel = "";  // or the site of a choice (ChoiceProgress)
  int number = 0;           // of the kernel, from 1; those of sites come first
  int kernels = 0;
  TuneState state = TuneState::kSearching;
  std::string why = "";
  double share = 0;  // of the program's device time
  // Seconds of one launch; 0: not known yet.
  double seconds_before = 0;
  double seconds_now = 0;
  Roofline roofline = {};
  int round = 0;
  int tried = 0;
  int refused = 0;
  double fraction_done = 0;  // of everything
  bool is_site = false;
};

// Who wants a tuning.
enum class Origin {
  kAsked,  // a user
  kIdle,   // the daemon, because nothing else is done
};
// "asked", "idle".
std::string_view OriginName(Origin origin);

struct TuneOptions {
  double seconds = 60;  // for all kernels; a batch of candidates that has begun ends
  int width = 4;
  // Searches also kernels that were already searched with at least this width.
  bool force = false;
  // Pays for the results that are compared. Null: they are not charged.
  std::shared_ptr<memory::Account> host = nullptr;
  std::function<void(const TuneProgress&)> on_progress = nullptr;  // may be null
  std::shared_ptr<TuningControl> control = nullptr;                // may be null
  // Compiles candidates instead of the tuner's function. Null: that does.
  workers::CompileFunction compile = nullptr;
  Origin origin = Origin::kAsked;
  // The graph that the kernels belong to, whose choices are searched first. Null: only kernels are.
  std::shared_ptr<const GraphToTune> graph = nullptr;
};

struct TuneSummary {
  int faster = 0;
  int kept = 0;
  int failed = 0;
  int skipped = 0;  // kSearched, kNoTime
};

struct TuningInfo {
  std::string program;  // its short digest
  std::string user{};   // who asked; empty: the daemon
  Origin origin = Origin::kAsked;
  std::shared_ptr<TuningControl> control;  // not null
};

struct ListedTuning {
  uint64_t id = 0;
  TuningInfo info;
  std::vector<std::string> devices{};
  absl::Time since;       // wall clock
  TuneProgress progress;  // without a kernel until the first one begins
};

// Thread-safe. At most one program is tuned on a device at a time.
class Tuner {
 public:
  struct Options {
    SettingStore* store = nullptr;
    workers::CompileFunction compile;
    // Compiles programs with other choices. Null: they are not searched for.
    runtime::CompileFunction compile_program = nullptr;
    MakeTrialRunner make_runner;
    metrics::Metrics* metrics = nullptr;
    Clock clock;
    TrialOptions trials{};
    // Gets what searches measure, and orders their candidates by it. May be null.
    CostSamples* samples = nullptr;
    // Measures the rates of hardware whose rates are not stored, so that searches end at the
    // roofline.
    bool measure_rates = false;
    // Called after settings were stored that compilations from now on will use.
    std::function<void()> on_changed;
  };

  // Devices that are being tuned. Ends with its object, which the tuner outlives.
  class Claim {
   public:
    Claim(Tuner* tuner, uint64_t id) : tuner_(tuner), id_(id) {}
    ~Claim() { tuner_->Release(id_); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // Shows others how far it is.
    void Report(const TuneProgress& progress) { tuner_->Report(id_, progress); }

   private:
    Tuner* const tuner_;
    const uint64_t id_;
  };

  // All fields are required.
  explicit Tuner(Options options);
  // Requires: all claims have ended.
  ~Tuner();

  // FAILED_PRECONDITION: a device computes nothing, so that it cannot be tuned. UNAVAILABLE: it
  // takes no new work, the tuner has stopped, or another program is being tuned there, which the
  // message names by its digest if it is the same user's. But what a user asks for cancels what
  // the daemon does for itself, and one that was cancelled holds up no other.
  absl::StatusOr<std::unique_ptr<Claim>> Begin(std::vector<runtime::ManagedDevice*> devices,
                                               TuningInfo info) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the claims, oldest first.
  std::vector<ListedTuning> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a tuning soon, with CANCELLED and this message. NOT_FOUND if there is none, or if it is
  // not this user's; an empty name: anybody's. Returns what was cancelled.
  absl::StatusOr<TuningInfo> Cancel(uint64_t id, const std::string& user,
                                    const std::string& message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a user's tuning has this device.
  bool IsAsked(const runtime::ManagedDevice& device) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Searches for choices for the graph, if there is one, for less than half of the time, and goes
  // on with the kernels of the best ones.
  //
  // Searches the kernels one after another, the largest share of the device time first. A kernel
  // gets its share of the time that is left, and what earlier ones left over. Each result is stored
  // as soon as it is there. `program` is for the log. Requires: Begin has returned a claim on the
  // kernels' devices. CANCELLED; or the first error, if all kernels failed.
  absl::StatusOr<TuneSummary> Tune(std::vector<KernelToTune> kernels, const std::string& program,
                                   const TuneOptions& options);

  // Ends all tuning soon, also a candidate that hangs, and allows no other.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Work;
  class Running;
  struct Ongoing {
    TuningInfo info;
    std::vector<runtime::ManagedDevice*> devices;
    absl::Time since;
    TuneProgress progress;
    bool is_superseded = false;  // the devices are another's
  };
  void Release(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Report(uint64_t id, const TuneProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<bool> stopped_{false};
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Ongoing> claims_ ABSL_GUARDED_BY(mutex_);  // by id
  // They run candidates now: at most one for each claim.
  std::set<TrialRunner*> running_ ABSL_GUARDED_BY(mutex_);
};

// "searching", "faster", "kept", "searched before", "no time left", "failed".
std::string_view TuneStateName(TuneState state);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TUNER_H_
