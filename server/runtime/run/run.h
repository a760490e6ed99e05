// One run of a program: its buffers, and its way through the queues and the devices.
//
// A run has N devices, and an item in the queue of each. Its lists are submitted to all of them
// when its last turn has come (fairness/submission_order.h). With one device the first turn is the
// last one: the run itself is the only item, nothing is parked, and no other device is locked, held
// or signalled.
//
// The run of a long program shares its devices: other lists run in the middle of it. A single
// device that yields is given the whole list, and ends it when its slice is over and other work
// waits. The rest is submitted at the run's next turn. Other runs are submitted in pieces
// (Program::CutIntoPieces), each when its turn has come on all devices. Until its end, or its last
// piece, the run holds memory for intermediate results (program/run_memory.h). If it ends early,
// for whatever reason, its buffers stay until the list submitted last has ended.
//
// If a device fails, the lists of all others end, and the error names that device. From the first
// list on, each of several devices counts as busy until all lists have ended on all of them: they
// may still read its memory, which would be lost if the device were revived.
#ifndef KILN_SERVER_RUNTIME_RUN_RUN_H_
#define KILN_SERVER_RUNTIME_RUN_RUN_H_

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
#include "server/fairness/submission_order.h"
#include "server/runtime/program/bound_program.h"
#include "server/runtime/program/program.h"
#include "server/runtime/program/run_memory.h"
#include "server/runtime/run/first_run.h"
#include "server/trace/recorder.h"

namespace kiln::runtime {

using ValuePointer = std::shared_ptr<buffers::Value>;

// Checks number, shape, dtype and placement of the inputs (a failed or pending input is fine here).
// INVALID_ARGUMENT names the input.
absl::Status CheckInputs(const Signature& signature, absl::Span<const ValuePointer> inputs);

// Thread-safe. When a run ends, its results are resolved, then `done` is called; both happen on a
// device's thread, or on the thread that queues, drops or cancels it. If an input fails before the
// run does, the results fail with the input's error. Cancel and Stop may be called at any time.
//
// As fairness::Work it is its item in the queue of its first device.
class Run : public fairness::Work, public std::enable_shared_from_this<Run> {
 public:
  // The time that a run took on a device.
  struct DeviceTime {
    ManagedDevice* device = nullptr;
    double seconds = 0;
    // In the device's queue before it began; zero if it has not begun.
    absl::Duration waited = absl::ZeroDuration();
  };
  // `times`: by member.
  using Done = std::function<void(const absl::Status&, absl::Span<const DeviceTime> times)>;

  // Creates a run and allocates its results. Requires: the inputs have passed CheckInputs; `order`
  // outlives the run, and may be null for a program on one device. `label` names the run in the
  // log. `accounts`, by member, pay for results and intermediate results. `references`: how many
  // the caller has to an input that nothing else uses. The run may write an update over such an
  // input (IsOnlyInput in values.cc); 0: over none. Errors: RESOURCE_EXHAUSTED for memory,
  // UNAVAILABLE if a device failed.
  static absl::StatusOr<std::shared_ptr<Run>> Create(
      std::string label, std::shared_ptr<const BoundProgram> bound,
      std::vector<ValuePointer> inputs,
      absl::Span<const std::shared_ptr<buffers::Account>> accounts,
      fairness::SubmissionOrder* order, Done done, int references = 0);

  // Returns the items for the queues of its devices, by member; the first is this. Requires: called
  // at most once, and if it is called, all items are queued. One thread at a time queues the runs
  // of a flow, each on all of its devices before the next one: if the order differed between
  // devices, two runs could wait for each other.
  absl::InlinedVector<std::shared_ptr<fairness::Work>, 1> MakeWork();

  // Outputs, then updates.
  const std::vector<ValuePointer>& results() const { return results_; }

  // Makes the run fail with CANCELLED when its submitted part has ended. Returns false, and changes
  // nothing, if the run has failed, committed or ended, or if all of it was submitted to devices of
  // which one does not stop lists: then it runs to its end. Afterwards the caller must call
  // DropUnwanted of the dispatchers and StopUnwanted of the devices. Requires: runs that use its
  // results have been cancelled before.
  bool Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same with another error, on every device, and even if it has committed. Changes nothing if
  // the run has failed or ended.
  void Stop(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether it has begun to write over its inputs.
  bool has_committed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes sure that it does not write over its inputs, and fails instead. Returns false if it has
  // committed.
  bool KeepInputs() ABSL_LOCKS_EXCLUDED(mutex_);

  double predicted_seconds() const override;
  std::string label() const override { return label_; }
  bool is_wanted() const override { return !*unwanted_; }
  bool is_users() const override { return !user_.empty(); }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    return TakeTurn(0, ticket, waited);
  }
  void Fail(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class OtherMember;
  // A list that a device refused, so that it was not submitted.
  struct Refused {
    int member = 0;
    int64_t ticket = 0;
    absl::Status why;
  };
  // The parts that lists have in common if they are submitted together.
  struct Submission {
    size_t piece = 0;
    drivers::ListPosition begin;
    std::shared_ptr<drivers::SignalGroup> signals;
  };
  // The lists of one member that have ended.
  struct Ended {
    size_t pieces = 0;
    double seconds = 0;
    std::vector<double> command_seconds;  // of the whole list's commands, if timed
  };

  Run(std::string label, Program& program, fairness::SubmissionOrder* order)
      : label_(std::move(label)), order_(order), first_run_(program) {}

  Program& program() const { return *bound_->program; }
  const ShardedProgram& sharded() const { return program().sharded(); }
  int size() const { return sharded().size(); }
  ManagedDevice& device(int member) const { return sharded().device(member); }

  // values.cc
  absl::Status Allocate(absl::Span<const std::shared_ptr<buffers::Account>> accounts,
                        int references);
  // Returns the input that the result is written over, if that is possible.
  const buffers::Value* FindReplaced(size_t result, const buffers::Account& account,
                                     int references) const;
  // Whether the run and the caller of Create are the only users of the input, now and from now on.
  bool IsOnlyInput(const ValuePointer& input, int references) const;
  absl::StatusOr<ValuePointer> AllocateResult(
      size_t result, const TensorTypePointer& type,
      absl::Span<const std::shared_ptr<buffers::Account>> accounts) const;
  // Allocates larger buffers for the inputs that need them.
  absl::Status AllocateWider(const std::shared_ptr<buffers::Account>& account);
  // Copies those inputs on the device.
  absl::Status Widen();
  // In the order of compiler::CompiledProgram::slots.
  Slots MakeSlots(int member) const;
  // Called on the device's thread before it writes over inputs. Returns the reason why it must not.
  absl::Status BeginCommit() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error of the first input that has failed, or of the values of the variables.
  absl::Status InputFailure() const;
  // Returns the error if some of its memory was lost with a device that works again.
  absl::Status Loss() const;

  // run.cc
  //
  // Called when the run's turn, or that of its next piece, has come on this device.
  absl::StatusOr<Handed> TakeTurn(int member, int64_t ticket, absl::Duration waited)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Locked in each turn; null unless the program is joint.
  absl::Mutex* order_mutex() const { return sharded().is_joint() ? &order_->mutex : nullptr; }
  // The functions below, to LogStarted, are called with order_mutex() locked.
  //
  // Called while its turn has not come on all devices.
  absl::StatusOr<Handed> Park(int member, int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the reason why no more of it can be submitted, or true.
  absl::StatusOr<bool> CheckGoesOn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Called before the first piece, when the last turn has come on this device. Returns false, and
  // changes nothing, if the run cannot begin now.
  absl::StatusOr<bool> Begin(int member, int64_t ticket, absl::Duration waited)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides how the run is submitted, and takes the memory for that.
  absl::StatusOr<bool> TakeMemory(int member);
  // Counts the lists that are submitted next as in flight. Returns the failure if there is one.
  absl::StatusOr<Submission> Count(bool is_last) ABSL_LOCKS_EXCLUDED(mutex_);
  // Queues the next piece on the parked devices. Returns false if the session has ended.
  bool QueueNext();
  // On `member`, whose ticket this is, its turn has come just now; on all others it is parked.
  std::vector<Refused> SubmitAll(const Submission& submission, int member, int64_t ticket)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SubmitList(const Submission& submission, int member, int64_t ticket);
  void LogStarted(int member, int64_t ticket) const;
  // Records that the run, or its next piece, has waited in the queue.
  void TraceWait(int member, absl::Duration waited) const;
  size_t pieces() const { return pieces_ == nullptr ? 1 : pieces_->seconds.size(); }

  // Checks what mutex_ guards.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // end.cc
  //
  // Called when one of its lists has ended. May destroy this.
  void Finished(int member, int64_t ticket, const drivers::SubmitResult& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a list that has just ended, with its commands if they were timed. Requires: it still
  // counts as in flight.
  void TraceList(int member, const drivers::SubmitResult& result) const ABSL_LOCKS_EXCLUDED(mutex_);
  trace::Span MakeSpan(trace::Kind kind, int member) const;
  // Returns the number of the whole list's command with which the list began that ends now.
  int FirstCommand(int member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTimes(int member, const drivers::SubmitResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error of a lost device of the program, `member`'s first; OK if none is lost. A list
  // also ends because of a lost neighbour and may report first: users of the results should get the
  // cause from the start.
  absl::Status WhyLost(int member) const;
  // `until`: what is not given up. Returns false if it did nothing.
  enum class Until {
    kSubmitted,  // a run of which all lists have been submitted
    kCommitted,  // a run that has begun to write over its inputs
    kEnded,
  };
  bool GiveUp(const absl::Status& why, Until until) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: End has not been called. OK changes nothing.
  void SetFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the devices that must not be revived from its beginning to its end, although their own
  // lists have ended: those of a joint program.
  std::vector<ManagedDevice*> HeldDevices() const;
  void HoldDevices() const;
  void ReleaseDevices() const;
  // Requires: nothing of it is on a device or will be.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordTimes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the times of each call, by member; empty if this run was not timed.
  std::vector<std::vector<double>> CallSeconds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogEnded(const absl::Status& status) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Resolve(const absl::Status& status, absl::Span<const DeviceTime> times)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string label_;
  fairness::SubmissionOrder* const order_;
  std::string user_;
  std::shared_ptr<const BoundProgram> bound_;
  std::shared_ptr<const LoadedProgram> loaded_;
  std::vector<ValuePointer> inputs_;
  std::vector<std::shared_ptr<buffers::Value>> wider_;  // by input, null for most; or empty
  std::vector<ValuePointer> results_;
  int written_in_place_ = 0;  // results that are written over inputs
  Done done_;
  FirstRun first_run_;
  // The items of the members after the first. The dispatchers hold weak pointers to them.
  std::vector<std::shared_ptr<fairness::Work>> other_work_;

  // Until the end, the fields below that are not guarded by mutex_ belong to the submitting thread;
  // of a joint program, they are guarded by order_->mutex.
  RunMemory memory_;
  std::shared_ptr<const Pieces> pieces_;  // null: it is submitted whole
  bool may_end_early_ = false;            // the rest is then submitted again
  bool begun_ = false;
  absl::Duration waited_ = absl::ZeroDuration();  // until it began
  bool sampled_ = false;
  std::atomic<size_t> next_{0};  // piece
  std::vector<int64_t> parked_;  // tickets, by member; 0: its turn has not come; empty for one
  int turns_ = 0;                // how many are parked

  // Read by the devices; true once the run is given up.
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  // The first failure.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool has_committed_ ABSL_GUARDED_BY(mutex_) = false;
  bool keeps_inputs_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_submitted_ ABSL_GUARDED_BY(mutex_) = false;   // or nothing more will be
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;            // lists
  drivers::ListPosition begin_ ABSL_GUARDED_BY(mutex_);  // where the rest begins
  // With which the lists of a joint program wait for each other; set when it begins.
  std::shared_ptr<drivers::SignalGroup> signals_ ABSL_GUARDED_BY(mutex_);
  absl::InlinedVector<Ended, 1> ended_ ABSL_GUARDED_BY(mutex_);  // by member
  // Set while the devices have a list of it. Reset before the last device counts as idle, since
  // this may destroy the program's parts on the devices.
  std::shared_ptr<Run> self_ ABSL_GUARDED_BY(mutex_);
};

// The error of a run that its client cancelled.
absl::Status CancelledRun();

// Returns the error of an operation that uses a failed one: same code, reason and details.
absl::Status DependencyError(const absl::Status& cause);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_RUN_H_
