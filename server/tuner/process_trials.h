// Trials in another process, which candidates may crash, hang or damage.
#ifndef KILN_SERVER_TUNER_PROCESS_TRIALS_H_
#define KILN_SERVER_TUNER_PROCESS_TRIALS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/kernel/kernel.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/process.h"
#include "drivers/interface/target.h"
#include "server/tuner/trial_messages.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Not thread-safe, except Stop, Pause and Resume. DeviceTrials runs in the process, which opens the
// device itself.
//
// A process that ends, does not answer in time, or answers nonsense is replaced, and trials are
// loaded again when they are next used. The trial that ran gets an error. If others had run in that
// process, or something else killed it, they may be the cause, so the trial is first repeated in a
// new process: here, or by the caller (`repeats`). A trial that has ended a process alone is not
// run again: all its later calls return the error.
//
// Pause ends the process, so that its memory is free.
//
// The system ends the process together with the thread that started it: the one that called Make,
// Prepare, Load or a trial's method. Another thread may go on with the runner, in a new process.
class ProcessTrials : public TrialRunner {
 public:
  struct Options {
    // The command of a process that calls RunTrialProcess.
    std::vector<std::string> command;
    // Bound on what the process may allocate beyond what opening the device takes. 0: a multiple of
    // the kernel's arguments, and as much again as any image takes.
    int64_t memory_bytes_max = 0;
    // A step that takes this much longer than it should has hung, in seconds, and so has one that
    // does not begin: the inputs of large kernels take a while, so four times as long as opening
    // the kernel took is added.
    double patience_seconds = 2;
    // False: a step that has to be repeated fails with ABORTED, so that the caller can start the
    // new process (Trial::Load) when nothing waits for it. Its repetition counts as such.
    bool repeats = true;
    workers::SteadyClock now = std::chrono::steady_clock::now;
    // Charges for the memory of a process. The result is kept as long as there may be one: until a
    // pause, after which it is called again. May be null. The function that it gets ends the
    // process, if SetOnYield allows that, and returns true then (buffers::Pool::GiveUp). Requires:
    // that function is not called any more when the result has been destroyed.
    using GiveUp = std::function<bool()>;
    std::function<absl::StatusOr<std::shared_ptr<const void>>(GiveUp)> charge = nullptr;
    // Called for each process that is lost, with the reason. May be null.
    std::function<void(const std::string& why)> on_lost = nullptr;
  };

  // Starts the process. Errors: those of the charge, those of DeviceTrials::Make in the process,
  // and UNAVAILABLE if none can be started or it does not open the device.
  static absl::StatusOr<std::unique_ptr<ProcessTrials>> Make(const kernel::Kernel& kernel,
                                                             const drivers::Target& target,
                                                             uint64_t seed, Options options);
  // The same without the process: the first trial starts it, so that Stop can end it meanwhile, and
  // returns these errors, except those of the charge.
  static absl::StatusOr<std::unique_ptr<ProcessTrials>> MakeUnopened(const kernel::Kernel& kernel,
                                                                     const drivers::Target& target,
                                                                     uint64_t seed,
                                                                     Options options);
  ~ProcessTrials() override;

  absl::Status Prepare(const Inputs& inputs) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the process.
  void Stop(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Pause() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume() override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetOnYield(std::function<void()> on_yield) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override;
  absl::StatusOr<std::unique_ptr<Trial>> LoadSteps(absl::Span<const TrialStep> steps) override;

  // For tests: the process, or 0.
  pid_t pid() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class RemoteTrial;
  // The end of an exchange of messages with the process.
  struct Result {
    absl::StatusOr<double> answer = 0;
    // The process is gone; `answer` says why.
    bool lost = false;
    // Something that need not be the trial ended it.
    bool killed = false;
  };

  ProcessTrials(const kernel::Kernel& kernel, const drivers::Target& target, uint64_t seed,
                Options options);

  // Runs the request for the trial, in a new process if needed. kLoad: only loads it.
  absl::StatusOr<double> Do(RemoteTrial& trial, const TrialRequest* request, double seconds_max,
                            Outputs* outputs);
  // The same, once, in the process that there is.
  Result Try(RemoteTrial& trial, const TrialRequest* request, double seconds_max, Outputs* outputs);
  // Charges for the process, unless that was done since the last pause.
  absl::Status Charge() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the process as Pause does, without returning the charge. Returns false, and does nothing,
  // if it is not to yield.
  bool GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes sure that there is a process, with the kernel open.
  absl::Status Open() ABSL_LOCKS_EXCLUDED(mutex_);
  Result Ask(const TrialRequest& request, double seconds_max, Outputs* outputs)
      ABSL_LOCKS_EXCLUDED(mutex_);
  workers::Transfer ReceiveOutputs(int socket, const workers::Deadline& deadline,
                                   Outputs* outputs) const;
  Result Lose(workers::Transfer transfer, double seconds_max) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndProcess() ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: there is none. Only this object's user replaces it, so it stays valid for them.
  workers::Process* process() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why nothing can run: it is stopped, or paused.
  absl::Status halted() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status HaltedLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  int64_t pauses() const ABSL_LOCKS_EXCLUDED(mutex_);

  const kernel::Kernel& kernel_;
  const std::string hardware_;
  const uint64_t seed_;
  const Options options_;
  const int64_t memory_bytes_max_;
  double overhead_seconds_ = 0;  // of a step, on top of the kernel's runs
  uint64_t last_number_ = 0;     // of a request
  uint64_t last_trial_ = 0;
  uint64_t generation_ = 0;  // the number of processes started
  std::set<uint64_t> ran_;   // trials that were sent to this process
  std::vector<uint64_t> unloaded_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const void> charge_ ABSL_GUARDED_BY(mutex_);  // what Options::charge returned
  std::function<void()> on_yield_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<workers::Process> process_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t pauses_ ABSL_GUARDED_BY(mutex_) = 0;    // that have begun
  bool is_shut_ ABSL_GUARDED_BY(mutex_) = false;  // a pause ends the process
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_PROCESS_TRIALS_H_
