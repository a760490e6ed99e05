// One run of a program: its buffers, and its way through the queue and the device.
//
// The run of a long program shares the device: other lists run in the middle of it. A device that
// yields is given the whole list, and ends it when its slice is over and other work waits. The rest
// is submitted at the run's next turn. Other devices are given the run in pieces
// (Program::CutIntoPieces). Until its end, or its last piece, the run holds a separate arena
// (arenas.h). If it ends early, for whatever reason, its buffers stay until the list submitted last
// has ended.
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
// called; both happen on the device's thread, or on the thread that queues, drops or cancels it. If
// an input fails before the run does, the results fail with the input's error. Cancel may be called
// by any thread at any time.
class Run : public QueuedRun, public fairness::Work, public std::enable_shared_from_this<Run> {
 public:
  // Seconds on the device.
  using Done = std::function<void(const absl::Status&, double seconds)>;

  // Creates a run and allocates its results. Requires: the inputs have passed CheckInputs. `label`
  // names the run in the log. Errors: RESOURCE_EXHAUSTED for memory, UNAVAILABLE if the device
  // failed.
  static absl::StatusOr<std::shared_ptr<Run>> Create(std::string label,
                                                     std::shared_ptr<const BoundProgram> bound,
                                                     std::vector<ValuePointer> inputs,
                                                     std::shared_ptr<buffers::Account> account,
                                                     Done done);

  // Outputs, then updates.
  const std::vector<ValuePointer>& results() const override { return results_; }

  // Makes the run fail with CANCELLED when its submitted part has ended. Returns false, and changes
  // nothing, if the run has failed or ended, or if all of it was submitted to a device that does
  // not stop lists: then it runs to its end. Afterwards the caller must call DropUnwanted of the
  // dispatcher and StopUnwanted of the device. Requires: runs that use its results have been
  // cancelled before.
  bool Cancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  // The same with another error, on every device. Changes nothing if the run has failed or ended.
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
  // Sets the first failure; does nothing if `why` is OK. Requires: End has not been called.
  void SetFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the reason why no more of it can be submitted, or OK.
  absl::Status CheckGoesOn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Called before the first piece: decides how the run is submitted and takes its arena. Returns
  // false if no arena is free now.
  absl::StatusOr<bool> Begin();
  // In the order of compiler::CompiledProgram::slots: inputs, results, arena.
  Slots MakeSlots() const;
  // Submits the rest of a run that may end early.
  absl::StatusOr<Handed> SubmitRest(int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SubmitList(drivers::PreparedList& list, bool is_last, int64_t ticket)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Called when one of its lists has ended.
  void Finished(int64_t ticket, const drivers::SubmitResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the times of its lists.
  void AddTimes(const drivers::SubmitResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: nothing of it is on the device or will be. The caller releases `self_` afterwards.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordTimes();
  void ReleaseArena();
  // Returns whether some of its memory was lost with the device, which works again.
  bool IsLost() const;
  // Returns the error of the first input that has failed, or of the values of the variables.
  absl::Status InputFailure() const;
  void Resolve(const absl::Status& status, double seconds);

  Program& program() const { return *bound_->program; }
  // Allocates larger buffers for the inputs that need them.
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

  // Until the end, the fields below that are not guarded by the mutex belong to the submitting
  // thread.
  std::shared_ptr<Arena> arena_;  // first the reserved one, then the one that is used
  bool holds_arena_ = false;
  std::unique_ptr<buffers::Account::Arena> arena_charge_;
  std::shared_ptr<const Program::Pieces> pieces_;  // null: it is submitted whole
  bool may_end_early_ = false;                     // the rest is then submitted again
  bool begun_ = false;
  bool sampled_ = false;
  std::atomic<size_t> next_{0};  // piece

  // Read by the device; true once the run is given up.
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  // The first failure.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool all_submitted_ ABSL_GUARDED_BY(mutex_) = false;   // or nothing more will be
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;            // lists
  drivers::ListPosition begin_ ABSL_GUARDED_BY(mutex_);  // where the rest begins
  size_t pieces_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  double seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<double> command_seconds_ ABSL_GUARDED_BY(mutex_);  // of the whole list's commands, if
                                                                 // timed
  std::shared_ptr<Run> self_ ABSL_GUARDED_BY(mutex_);  // while the device has a list of it
};

// Adds the command times of a list that began with command `first` of the whole list. Another list
// may have run a part of that command.
void AddCommandSeconds(int first, absl::Span<const double> seconds, std::vector<double>* all);

// The error of a run that its client cancelled.
absl::Status CancelledRun();

// Returns the error of an operation that uses a failed one: same code, reason and details.
absl::Status DependencyError(const absl::Status& cause);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_H_
