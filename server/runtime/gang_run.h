// One run of a program on several devices: one item in each device's queue. It is submitted to all
// devices when its turn has come on all of them (fairness/gang_order.h).
#ifndef KILN_SERVER_RUNTIME_GANG_RUN_H_
#define KILN_SERVER_RUNTIME_GANG_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/fairness/gang_order.h"
#include "server/runtime/run.h"

namespace kiln::runtime {

// Thread-safe.
//
// A long run is submitted in pieces (Gang::Pieces), each when its turn has come on all devices.
// From the first piece to the last it holds the memory that the program's runs share. If it is
// cancelled before the last piece is submitted, it ends with the piece that runs. After that it can
// be cancelled only if all of its devices stop lists.
//
// If one device fails, the lists of all others end, and the error names that device. From the first
// piece on, each device counts as busy until all lists have ended on all devices: they may still
// read its memory, which would be lost if the device were revived.
class GangRun : public QueuedRun, public std::enable_shared_from_this<GangRun> {
 public:
  // Seconds on each device, by place.
  using Done = std::function<void(const absl::Status&, absl::Span<const double> seconds)>;

  // Creates a run and allocates its results. Requires: the inputs have passed CheckInputs; `order`
  // outlives the run. `accounts`, by place, pay for results and intermediate results. Errors:
  // RESOURCE_EXHAUSTED for memory, UNAVAILABLE if a device failed.
  static absl::StatusOr<std::shared_ptr<GangRun>> Create(
      std::string label, std::shared_ptr<const BoundProgram> bound,
      std::vector<ValuePointer> inputs,
      const std::vector<std::shared_ptr<buffers::Account>>& accounts, fairness::GangOrder* order,
      Done done);
  ~GangRun() override;

  // Returns one work for each device's queue. Requires: called once, and all works are queued. One
  // thread at a time queues the runs of a flow, each on all of its devices before the next one: if
  // the order differed between devices, two runs could wait for each other.
  std::vector<std::shared_ptr<fairness::Work>> MakeWork();

  const std::vector<ValuePointer>& results() const override { return results_; }
  bool Cancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Member;

  GangRun(std::string label, std::shared_ptr<const BoundProgram> bound, fairness::GangOrder* order)
      : label_(std::move(label)),
        bound_(std::move(bound)),
        order_(*order),
        first_run_(*bound_->program) {}

  double first_seconds() const;  // expected time of the first piece
  Gang& gang() const { return *bound_->program->gang(); }
  ManagedDevice& device(int member) const { return *gang().members()[member].device; }
  absl::Status Allocate(const std::vector<std::shared_ptr<buffers::Account>>& accounts);
  // Called when the run's turn, or that of its next piece, has come on this device.
  absl::StatusOr<fairness::Work::Handed> Ready(int member, int64_t ticket, absl::Duration waited)
      ABSL_LOCKS_EXCLUDED(mutex_, order_.mutex);
  absl::Status CheckGoesOn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds all devices and returns kAll if the run can begin now; else it does not begin.
  absl::StatusOr<fairness::Work::Handed> Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status InputFailure() const;
  size_t pieces() const { return pieces_ == nullptr ? 1 : pieces_->seconds.size(); }
  // Queues the next piece on all devices. Returns false if the session has ended.
  bool QueueNext(const std::vector<int64_t>& tickets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex);
  void ReleaseMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex);
  // A list that a device refused, so that it was not submitted.
  struct Refused {
    int member = 0;
    int64_t ticket = 0;
    absl::Status why;
  };
  // Submits the next piece. On `last` its turn has come just now, within Submit; on all others it
  // has been parked.
  std::vector<Refused> SubmitAll(int last, const std::vector<int64_t>& tickets)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SubmitOne(int member, size_t piece, int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // May destroy this.
  void Finished(int member, int64_t ticket, const drivers::SubmitResult& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error of a lost device of the gang, `member`'s first; OK if none is lost. A list
  // also ends because of a lost neighbour and may report first: users of the results should get the
  // cause from the start.
  absl::Status WhyLost(int member) ABSL_LOCKS_EXCLUDED(mutex_);
  bool GiveUp(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: End has not been called. OK changes nothing.
  void SetFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the run; nothing more of it will be submitted.
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_, order_.mutex);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordTimes(const std::vector<double>& seconds);
  // Returns the times of each call, by member; empty if this run was not timed.
  std::vector<std::vector<double>> CallSeconds() const;
  // For a program in stages, returns the member that has the value; else -1: each has a part.
  int MemberOfInput(size_t input) const;
  int MemberOfResult(size_t result) const;
  // Returns the part of a value on `member`; `home` is the member that has it, or -1. Null if the
  // member has nothing of it.
  static const buffers::Value* OnMember(const buffers::Value& value, int home, int member);
  bool HasLost(int member) const;

  const std::string label_;
  std::string user_;
  const std::shared_ptr<const BoundProgram> bound_;
  fairness::GangOrder& order_;
  FirstRun first_run_;
  std::shared_ptr<const Gang::Loaded> loaded_;
  std::shared_ptr<Gang::Memory> memory_;
  std::vector<std::unique_ptr<buffers::Account::Arena>> arena_charges_;
  std::vector<ValuePointer> inputs_;
  std::vector<ValuePointer> results_;
  Done done_;
  // Keeps the works until the run ends: the dispatchers hold weak pointers to them.
  std::vector<std::shared_ptr<fairness::Work>> work_;
  std::shared_ptr<const Gang::Pieces> pieces_;     // null: it is submitted whole
  std::shared_ptr<drivers::SignalGroup> signals_;  // set when it begins
  bool sampled_ = false;
  // By place; timed runs only, as in Run.
  std::vector<std::vector<double>> command_seconds_;

  // All guarded by order_.mutex.
  size_t next_ = 0;               // piece
  std::vector<int64_t> tickets_;  // where its turn has come; 0: not yet
  int ready_ = 0;
  bool holds_memory_ = false;

  // For the devices; true once the run is given up.
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;          // something was submitted
  bool all_submitted_ ABSL_GUARDED_BY(mutex_) = false;  // or nothing more will be
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // lists
  // Set while any list is in flight. Reset before the last device counts as idle, since this may
  // destroy the program's parts on the devices.
  std::shared_ptr<GangRun> self_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> seconds_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> pieces_ended_ ABSL_GUARDED_BY(mutex_);  // by place
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GANG_RUN_H_
