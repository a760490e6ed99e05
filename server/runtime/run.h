// One run of a program: its buffers, on their way through the queue and the device.
//
// A long program's run shares the device: others' lists run in the middle of it. A device that
// yields is given all of it, and ends the list when its slice is over and others wait; the rest is
// submitted when its turn has come again. Other devices are given it in pieces
// (Program::CutIntoPieces). Until its end, or its last piece, it holds an arena of its own
// (arenas.h), and whatever ends it early, its buffers stay until what was submitted last has ended.
#ifndef KILN_SERVER_RUNTIME_RUN_H_
#define KILN_SERVER_RUNTIME_RUN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/value.h"
#include "server/fairness/dispatcher.h"
#include "server/runtime/bound_program.h"
#include "server/runtime/first_run.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

using ValuePointer = std::shared_ptr<buffers::Value>;

// Checks number, shape and dtype of the inputs (a failed or pending input is fine here).
// INVALID_ARGUMENT names the input.
absl::Status CheckInputs(const Signature& signature, absl::Span<const ValuePointer> inputs);

// A run that a session has begun: on one device (Run) or on several (GangRun). Thread-safe.
class QueuedRun {
 public:
  virtual ~QueuedRun() = default;
  // Outputs, then updates.
  virtual const std::vector<ValuePointer>& results() const = 0;
  // See Run.
  virtual bool Cancel() = 0;
  virtual void Stop(const absl::Status& why) = 0;
};

// A run is queued as its device's work. When it ends, its results are resolved, then `done` is
// called; both happen on the device's thread, or on the one that queues, drops or cancels it. An
// input that fails before the run does fails the results with the input's error. Cancel may be
// called by any thread at any time.
class Run : public QueuedRun, public fairness::Work, public std::enable_shared_from_this<Run> {
 public:
  // Seconds on the device.
  using Done = std::function<void(const absl::Status&, double seconds)>;

  // Allocates the results. The inputs have passed CheckInputs. `label` is what the log calls the
  // run. RESOURCE_EXHAUSTED: memory; UNAVAILABLE: the device failed.
  static absl::StatusOr<std::shared_ptr<Run>> Create(std::string label,
                                                     std::shared_ptr<const BoundProgram> bound,
                                                     std::vector<ValuePointer> inputs,
                                                     std::shared_ptr<buffers::Account> account,
                                                     Done done);

  // Outputs, then updates.
  const std::vector<ValuePointer>& results() const override { return results_; }

  // The run fails with CANCELLED, when what was submitted of it has ended. False, and nothing
  // changes, if it has failed or ended, or if all of it was submitted to a device that does not
  // stop lists: then it runs to its end. The caller has the dispatcher drop it (DropUnwanted), and
  // the device leave what it runs (StopUnwanted); runs that use its results must have been
  // cancelled before.
  bool Cancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise with another error, on every device. Nothing changes if it has failed or ended.
  void Stop(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

  double predicted_seconds() const override;
  std::string label() const override { return label_; }
  bool is_wanted() const override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Slots = absl::InlinedVector<drivers::Buffer*, 32>;

  Run(std::string label, Program& program) : label_(std::move(label)), first_run_(program) {}
  void LogStarted(int64_t ticket) const;
  void LogEnded(const absl::Status& status) const;
  bool GiveUp(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Unless it is OK, or something went wrong before. Before End.
  void SetFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why nothing more of it can be submitted, if so.
  absl::Status CheckGoesOn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Before the first piece: what the run is submitted as, and its arena. False: there is none now.
  absl::StatusOr<bool> Begin();
  // In the order of compiler::CompiledProgram::slots: inputs, results, arena.
  Slots MakeSlots() const;
  // Of a run that may end early, what is left.
  absl::StatusOr<Handed> SubmitRest(int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SubmitList(drivers::PreparedList& list, bool is_last, int64_t ticket)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A list of it ended.
  void Finished(int64_t ticket, const drivers::SubmitResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds up what the pieces of it took.
  void AddTimes(const drivers::SubmitResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing of it is on the device, and nothing will be. `self_` is released when it returns.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordTimes();
  void ReleaseArena();
  // Whether something of it was lost with the device, which works again.
  bool IsLost() const;
  // The error of the first input that has failed, or of the values of the variables.
  absl::Status InputFailure() const;
  void Resolve(const absl::Status& status, double seconds);

  Program& program() const { return *bound_->program; }
  // Larger buffers for the inputs that need them.
  absl::Status AllocateWider(const std::shared_ptr<buffers::Account>& account);
  // Copies those inputs on the device.
  absl::Status Widen();

  const std::string label_;
  std::string user_;
  std::shared_ptr<const BoundProgram> bound_;
  std::shared_ptr<const Program::Loaded> loaded_;
  std::vector<ValuePointer> inputs_;
  std::vector<std::shared_ptr<buffers::Value>> wider_;  // by input, null for most; or empty
  std::vector<ValuePointer> results_;
  Done done_;
  FirstRun first_run_;

  // The rest but what the mutex guards belongs to the thread that submits, until the end.
  std::shared_ptr<Arena> arena_;  // the one that was reserved, then the one that is used
  bool holds_arena_ = false;
  std::unique_ptr<buffers::Account::Arena> arena_charge_;
  std::shared_ptr<const Program::Pieces> pieces_;  // null: it is submitted whole
  bool may_end_early_ = false;                     // and comes back then
  bool begun_ = false;
  bool sampled_ = false;
  std::atomic<size_t> next_{0};  // piece

  // For the device; true once the run has been given up.
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  // The first thing that went wrong.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool all_submitted_ ABSL_GUARDED_BY(mutex_) = false;   // or nothing more will be
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;            // lists
  drivers::ListPosition begin_ ABSL_GUARDED_BY(mutex_);  // of what is left
  size_t pieces_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  double seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<double> command_seconds_ ABSL_GUARDED_BY(mutex_);  // of the whole list's, if timed
  std::shared_ptr<Run> self_ ABSL_GUARDED_BY(mutex_);  // while the device has something of it
};

// Adds what a list took that began with this command of the whole one. Another list may have run a
// part of it.
void AddCommandSeconds(int first, absl::Span<const double> seconds, std::vector<double>* all);

// The error of a run that its client cancelled.
absl::Status CancelledRun();

// The error of an operation that uses something that failed: same code, reason and details.
absl::Status DependencyError(const absl::Status& cause);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_H_
