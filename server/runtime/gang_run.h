// One run of a program on several devices: one item in each device's queue, submitted to all of
// them when its turn has come everywhere (fairness/gang_order.h).
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

// A long one is submitted in pieces (Gang::Pieces), each when its turn has come everywhere; from
// the first to the last it holds what its program's runs share. Cancelled before the last, it ends
// with the piece that runs; behind it, devices that stop lists leave it, and one that cannot ends
// it with the others'. When one device fails it, all others' lists end, and the error names that
// device. From the first piece on each device counts as busy until all lists have ended, its own or
// not, since they may still read its memory, which is gone if it is lost and revived. Thread-safe.
class GangRun : public QueuedRun, public std::enable_shared_from_this<GangRun> {
 public:
  // Seconds on each device, by place.
  using Done = std::function<void(const absl::Status&, absl::Span<const double> seconds)>;

  // Allocates the results. The inputs have passed CheckInputs. `accounts`, by place: who pays for
  // results and intermediate results. `order` outlives the run. RESOURCE_EXHAUSTED: memory;
  // UNAVAILABLE: a device failed.
  static absl::StatusOr<std::shared_ptr<GangRun>> Create(
      std::string label, std::shared_ptr<const BoundProgram> bound,
      std::vector<ValuePointer> inputs,
      const std::vector<std::shared_ptr<buffers::Account>>& accounts, fairness::GangOrder* order,
      Done done);
  ~GangRun() override;

  // One work for each device's queue; once, and all of them are queued. A flow's runs are queued by
  // one thread at a time, each on all of its devices before the next: with another order on each
  // device two of them would be parked in front of one another.
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

  double first_seconds() const;  // that the first piece is expected to take
  Gang& gang() const { return *bound_->program->gang(); }
  ManagedDevice& device(int member) const { return *gang().members()[member].device; }
  absl::Status Allocate(const std::vector<std::shared_ptr<buffers::Account>>& accounts);
  // Its turn, or that of its next piece, has come on this device.
  absl::StatusOr<fairness::Work::Handed> Ready(int member, int64_t ticket, absl::Duration waited)
      ABSL_LOCKS_EXCLUDED(mutex_, order_.mutex);
  absl::Status CheckGoesOn() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds all devices if so; not kAll: it does not begin.
  absl::StatusOr<fairness::Work::Handed> Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status InputFailure() const;
  size_t pieces() const { return pieces_ == nullptr ? 1 : pieces_->seconds.size(); }
  // Has the next piece wait for its turn everywhere. False if it cannot: the session has ended.
  bool QueueNext(const std::vector<int64_t>& tickets) ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex);
  void ReleaseMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex);
  // What a device refused: what has not been submitted, and why.
  struct Refused {
    int member = 0;
    int64_t ticket = 0;
    absl::Status why;
  };
  // The next piece, on `last` within its Submit; on all others it has been parked.
  std::vector<Refused> SubmitAll(int last, const std::vector<int64_t>& tickets)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_.mutex) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SubmitOne(int member, size_t piece, int64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // May destroy this.
  void Finished(int member, int64_t ticket, const drivers::SubmitResult& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What a lost device of the gang says, `member`'s first; OK if none is. A list ends because of a
  // lost neighbour, too, and may be the first to report: who uses the results should hear the cause
  // from the start.
  absl::Status WhyLost(int member) ABSL_LOCKS_EXCLUDED(mutex_);
  bool GiveUp(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Before End. OK changes nothing.
  void SetFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing more of it will be submitted.
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_, order_.mutex);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordTimes(const std::vector<double>& seconds);
  // By member, of each of its calls; empty: this run was not timed.
  std::vector<std::vector<double>> CallSeconds() const;
  // Of a program in stages, the member that has it; else -1: each has its part.
  int MemberOfInput(size_t input) const;
  int MemberOfResult(size_t result) const;
  // What `member` has of a value whose home is `home`; null: nothing.
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
  // For the dispatchers, which know what they have handed over by weak pointers. Until it ends.
  std::vector<std::shared_ptr<fairness::Work>> work_;
  std::shared_ptr<const Gang::Pieces> pieces_;     // null: it is submitted whole
  std::shared_ptr<drivers::SignalGroup> signals_;  // once it has begun
  bool sampled_ = false;
  // By place; of those that are timed, as Run has them.
  std::vector<std::vector<double>> command_seconds_;

  // All under order_.mutex.
  size_t next_ = 0;               // piece
  std::vector<int64_t> tickets_;  // of those where its turn has come; 0: not yet
  int ready_ = 0;
  bool holds_memory_ = false;

  // For the devices; true once the run has been given up.
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);

  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;          // something was submitted
  bool all_submitted_ ABSL_GUARDED_BY(mutex_) = false;  // or nothing more will be
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // lists
  // While there are any: it goes before the last device counts as idle, since with it may go what
  // the devices have of the program.
  std::shared_ptr<GangRun> self_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> seconds_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> pieces_ended_ ABSL_GUARDED_BY(mutex_);  // by place
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GANG_RUN_H_
