// A session of one client: its tensors and programs, and its operations, executed in order and
// exactly once.
//
// Operations are executed one at a time in the order of their sequence numbers. Execution binds
// handles and queues runs; it does not wait for the device. Only a Run whose program is being
// compiled, or whose inputs are being copied to the device, delays the operations after it. Answers
// are sent when an operation has ended, in any order.
//
// A failed operation binds its new handles to failed values: operations that use them fail with the
// same code and reason. A Run that fails before it starts (wrong inputs, no memory) changes no
// state: the inputs that it would have updated keep their values. If a run fails on the device, the
// updated inputs are failed values, too.
//
// Cancel takes effect when it is received, before waiting operations. It cancels the last of the
// runs that it names: runs go to the device in order. A run that was fully submitted to the device
// continues to its end; one that was partly submitted stops at the next slice. Each cancelled run
// and its outputs fail with CANCELLED. Cancelling changes no state: of the inputs that a run would
// have updated, either all keep their values or, if it was not cancelled, none. Operations after
// the Cancel see the result.
#ifndef KILN_SERVER_SESSIONS_SESSION_H_
#define KILN_SERVER_SESSIONS_SESSION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/blob_store.h"
#include "server/clock/clock.h"
#include "server/fairness/submission_order.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/run/run.h"
#include "server/runtime/thread_pool.h"
#include "server/sessions/answer_log.h"
#include "server/sessions/executor.h"
#include "server/sessions/handle_table.h"
#include "server/sessions/image.h"
#include "server/sessions/in_flight.h"
#include "server/sessions/journal.h"
#include "server/sessions/journal_record.h"
#include "server/sessions/kept_sessions.h"
#include "server/sessions/operation.h"
#include "server/sessions/program_table.h"
#include "server/sessions/session_names.h"
#include "server/sessions/unfinished_operations.h"
#include "server/sessions/unfinished_runs.h"
#include "server/sessions/used_devices.h"
#include "server/sessions/user.h"

namespace kiln::sessions {

// Limits on what the daemon holds for one session.
struct SessionLimits {
  int64_t read_bytes = 1 << 20;              // of a Read's answer; larger values need Download
  int64_t unfinished_operations = 4096;      // received and not answered; reading pauses at this
  int64_t unfinished_bytes = 64 << 20;       // of them and their graphs; reading pauses at this
  int64_t unacknowledged_answers = 1 << 17;  // the stream is closed above this
  int64_t unacknowledged_bytes = 16 << 20;
  size_t bindings_per_program = 256;  // remembered; the least recently used are evicted
};

// The dependencies of sessions. Requires: all of them outlive the sessions.
struct Services {
  runtime::ProgramCache* programs = nullptr;
  buffers::BlobStore* blobs = nullptr;
  metrics::Metrics* metrics = nullptr;
  runtime::ThreadPool* copies = nullptr;  // for copies that may block
  Clock clock;
  // Reads the result of GraphSource::Wire, for programs that were saved.
  std::function<absl::StatusOr<std::shared_ptr<const runtime::GraphSource>>(absl::string_view,
                                                                            memory::Account&)>
      unpack_graph;
  SessionLimits limits;
  SessionNames* names = nullptr;  // the registry's
  // All devices of the daemon, and the order in which multi-device programs are queued on them.
  std::vector<runtime::ManagedDevice*> devices = {};
  fairness::SubmissionOrder* submission_order = nullptr;
  const KeptSessions* kept = nullptr;             // null: no session can be protected
  absl::Duration keep_max = absl::Hours(7 * 24);  // of a detached session
  std::shared_ptr<memory::HostMemory> host =
      std::make_shared<memory::HostMemory>(int64_t{1} << 30, 1024);
};

// Thread-safe. Shared, because runs in flight keep it alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Identity = SessionIdentity;
  struct Snapshot {
    absl::Time expires;
    bool connected = false;
    int64_t memory_bytes = 0;
    int64_t buffers = 0;
    int64_t programs = 0;
    int64_t runs = 0;
    int64_t waiting = 0;  // operations received that have not ended
    double device_seconds = 0;
    std::string detached_name;  // empty if it was not detached
    // The time of the last image; InfinitePast while the session would not survive SIGKILL of the
    // daemon.
    absl::Time protected_since = absl::InfinitePast();
  };

  Session(Identity identity, std::shared_ptr<User> user, runtime::ManagedDevice& device,
          Services services, std::shared_ptr<memory::Account> host, memory::Charge charge);

  const Identity& identity() const { return identity_; }
  const User& user() const { return *user_; }
  // Shared by all sessions of the user.
  quota::Meter& uploads_of_user() const { return user_->uploads; }
  quota::Gate& upload_bytes_of_user() const { return user_->upload_bytes; }
  bool is_closed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The device on which it was opened.
  runtime::ManagedDevice& device() const { return *devices_.home().device; }
  // That device and all others that it has used.
  UsedDevices& devices() { return devices_; }
  // Called when a lost device works again: handles whose values were on it, entirely or in part,
  // fail from here on.
  void DropLost(const runtime::ManagedDevice& device) ABSL_LOCKS_EXCLUDED(mutex_);
  // The account for all host memory that the daemon holds for this session.
  const std::shared_ptr<memory::Account>& host() const { return host_; }
  // True if one of its program ids refers to `program`.
  bool Uses(const runtime::Program& program) const ABSL_LOCKS_EXCLUDED(mutex_);
  Snapshot GetSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The progress of programs that are not ready or whose first run has not been answered.
  std::vector<ProgramTable::Waiting> FirstCalls() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return programs_.FirstCalls();
  }
  // The session's holdings of a resource, for refusals (quota::WithHolders); for device memory its
  // largest values.
  std::vector<quota::Holder> HoldersOf(quota::Resource resource) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Attaches a new stream; an earlier one ends with ABORTED. Pushes Attached and the unacknowledged
  // answers. Of a closed session, returns why it was closed; NOT_FOUND if the user closed it.
  // ABORTED: the session was taken over and has another generation.
  absl::Status Attach(std::shared_ptr<Sink> sink, uint64_t acknowledged, uint64_t generation = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream has ended. Starts the lease, unless another stream is attached.
  void Detach(const Sink* sink) ABSL_LOCKS_EXCLUDED(mutex_);
  // Accepts one operation of the attached stream. An error ends the stream, not the session.
  // `travels_alone`: see UnfinishedOperations::Admit.
  absl::Status Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                      Operation operation, bool travels_alone = true) ABSL_LOCKS_EXCLUDED(mutex_);
  // The client sends no more on this stream. Ends it once everything has been answered.
  void EndAfterAnswers(const Sink* sink) ABSL_LOCKS_EXCLUDED(mutex_);
  // False: do not read the stream until Sink::ReadMore is called.
  bool WantsMore() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `done` with the handle's value once the operations up to `after_sequence` have been
  // executed and the value is available, or with the error if it is not. `done` may be called
  // before this returns.
  void WhenReadable(uint64_t handle, uint64_t after_sequence,
                    std::function<void(absl::StatusOr<runtime::ValuePointer>)> done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For a process that attaches by name. It continues with numbers above these. The session gets
  // another id; its stream, if there is one, ends with TAKEN_OVER, and so do requests with an
  // earlier id.
  struct Takeover {
    struct Tensor {
      NamedHandle named;
      buffers::TensorType type;
      // Null: the tensor is on one device.
      std::shared_ptr<const buffers::Placement> placement;
      std::string device;  // if on one device; empty for a failed tensor
    };
    std::string id;
    uint64_t last_sequence = 0;
    uint64_t last_handle = 0;
    uint64_t last_program = 0;
    std::vector<Tensor> tensors;
  };
  absl::StatusOr<Takeover> TakeOver() ABSL_LOCKS_EXCLUDED(mutex_);
  // Compares with the number of takeovers, which is part of the id. ABORTED, TAKEN_OVER, if they
  // differ.
  absl::Status CheckGeneration(uint64_t generation) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Renew() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Expired() const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK while it is open; otherwise the status that Attach returns.
  absl::Status CheckOpen() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops execution; operations that arrive are queued. Returns once nothing is being executed.
  void Pause() { executor_.Pause(); }
  // For a daemon that stops. From here on nothing is answered and requests fail with `reason`;
  // Close ends the session. Requires: Pause was called; the devices take nothing more from their
  // queues, and are idle or hang. Waits at most `patience` for a run that is just ending.
  // FAILED_PRECONDITION, without changes, if the state cannot be known.
  absl::StatusOr<SessionImage> Freeze(const absl::Status& reason, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if its files are complete, so that the next daemon can restore it if this one is killed.
  bool IsProtected() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True if it wants to be protected and TakeImage should be called.
  bool ImageIsDue() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes an image of the state between two operations, which replaces the earlier image; from
  // then on the session is protected. The session continues meanwhile; the tensors in the image
  // stay in memory until it is written. For one thread at a time. After an error the session
  // remains as it was: protected by the earlier image and the journal, or unprotected.
  absl::Status TakeImage(Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns once why it is not protected any more; OK if it is, or if this was called since.
  absl::Status TakeProtectionLoss() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the session owns a blob. Called before its client is told.
  void HoldsBlob(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the session does not own these blobs any more. Called before its client is told.
  void DeletedBlobs(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

  // For a new session that only the caller knows: restores the state of the image, but executes
  // nothing before Resume. Limits of its user, of host memory and of uploads are not enforced: what
  // existed remains. Returns the errors of device memory, of copies and of `bytes`; the session
  // cannot be used after an error.
  absl::Status Restore(std::shared_ptr<const SessionImage> image, ByteSource& bytes,
                       Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // Executes the pending operations again, then new ones.
  void Resume() { ExecuteQueued(); }
  // Called after Restore and before the first client: does what Resume does, then executes the
  // operations of the journal. DATA_LOSS: the journal is damaged, or an operation does not have the
  // recorded outcome. CANCELLED: `gives_up` returned true. Other errors: may be tried again with
  // another session.
  absl::Status Replay(JournalReader& journal, const JournalSummary& summary,
                      const std::function<bool()>& gives_up) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called after Restore, and Replay if there was a journal: the session is protected by the files
  // that it was restored from, and continues that journal.
  void Protect(const SessionImage& image, const JournalReader& journal) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops everything and ends the stream with `status`. Runs on the device are stopped if the
  // device supports it; their results are dropped. The files that protect the session are removed,
  // unless it is frozen or `files_stay`: they are then for the next daemon.
  void Close(const absl::Status& status, bool files_stay = false) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A run that has passed all checks.
  struct Plan {
    std::shared_ptr<const runtime::BoundProgram> program;
    std::vector<runtime::ValuePointer> inputs;
    std::shared_ptr<const ProgramOrigin> origin;
  };
  // The state of a restored session until it has executed the pending operations again.
  struct Resumption {
    std::shared_ptr<const SessionImage> image;
    std::vector<runtime::ValuePointer> values;  // of the image; null until they are made
    std::vector<std::shared_ptr<const runtime::GraphSource>> sources;  // of its origins
    std::vector<std::shared_ptr<runtime::ProgramFuture>> programs;     // of its pending runs
  };

  void ExecuteQueued() { Executor::Run(std::shared_ptr<Executor>(shared_from_this(), &executor_)); }
  Executor::Steps Steps();
  // Waits for the program's compilation, or for an input that is being copied to the device.
  Executor::AddWaiter MustWaitFor(uint64_t sequence, const RunProgram& run)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the program of a run that is executed again.
  Executor::AddWaiter MustWaitFor(const sessions::Resume& resume) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the lease. Returns its duration.
  absl::Duration StartLease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The lease; for a detached session at least the time for which it is kept.
  absl::Duration FullLease() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Duration StartLease(absl::Duration lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called without the lock, because the reader of the log may be slow. `event` says what has
  // happened.
  void LogLease(absl::string_view event, absl::Duration left) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Execute(uint64_t sequence, UnknownOperation& operation);
  void Execute(uint64_t sequence, DefineProgram& operation);
  void Execute(uint64_t sequence, RunProgram& operation);
  void Execute(uint64_t sequence, Write& operation);
  void Execute(uint64_t sequence, Move& operation);
  void Execute(uint64_t sequence, Read& operation);
  void Execute(uint64_t sequence, Release& operation);
  void Execute(uint64_t sequence, ReleaseProgram& operation);
  void Execute(uint64_t sequence, Barrier& operation);
  void Execute(uint64_t sequence, Cancel& operation);
  void Execute(uint64_t sequence, DetachAs& operation);
  void Execute(uint64_t sequence, Refused& operation);
  void Execute(uint64_t sequence, sessions::Resume& operation);

  std::vector<quota::Holder> LargestValues() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Plan> PlanRun(uint64_t sequence, const RunProgram& operation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Binds the results of a run that is about to be queued.
  void BindResults(uint64_t sequence, RunProgram& operation, const runtime::Signature& signature,
                   const std::shared_ptr<runtime::Run>& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels queued runs, and marks those that are not executed yet to fail. Returns true if the
  // caller must drop queued runs.
  bool CancelRuns(uint64_t sequence, const Cancel& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotCancelled(uint64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The data of a Write until its bytes are on the device.
  struct Upload {
    runtime::ValuePointer value;
    std::string data;
    std::vector<buffers::BlobStore::Blob> blobs;
    std::vector<absl::string_view> pieces;  // of `data` or `blobs`
    memory::Charge charge;                  // for staging memory
  };
  absl::StatusOr<std::shared_ptr<const Upload>> MakeUpload(uint64_t sequence, Write& operation);
  void FinishWrite(uint64_t sequence, const Upload& upload, const absl::Status& filled);
  // Fills a value in parts, one piece after another.
  void FillPieces(uint64_t sequence, std::shared_ptr<const Upload> upload, size_t next,
                  int64_t offset);
  // session_move.cc
  // Allocates a pending value with this placement. NOT_FOUND: no such device; INVALID_ARGUMENT: the
  // placement does not fit the type. Otherwise the errors of Pool::Allocate.
  absl::StatusOr<runtime::ValuePointer> AllocateAt(std::shared_ptr<const buffers::TensorType> type,
                                                   const Place& place);
  bool LiesAt(const buffers::Value& value, const Place& place) const;
  // Checks the placement of the inputs of a program on one device, or in stages. For other programs
  // runtime::CheckInputs does this.
  static absl::Status CheckLiesOn(const runtime::Program& program,
                                  absl::Span<const runtime::ValuePointer> inputs);
  void BeginMove(uint64_t sequence, const runtime::ValuePointer& source,
                 const runtime::ValuePointer& target);
  void FinishMove(uint64_t sequence, const runtime::ValuePointer& target,
                  const absl::Status& moved);
  // session_programs.cc
  struct MadeRun {
    std::shared_ptr<runtime::Run> run;
    std::function<void()> enqueue;  // called without locks
  };
  absl::StatusOr<MadeRun> MakeRun(uint64_t sequence,
                                  const std::shared_ptr<const runtime::BoundProgram>& program,
                                  std::vector<runtime::ValuePointer> inputs, bool report_time);
  void FinishRead(uint64_t sequence, const runtime::ValuePointer& value);
  void RunEnded(uint64_t sequence, bool report_time, const absl::Status& status,
                absl::Span<const runtime::Run::DeviceTime> times);
  // Calls `done` with the handle's value once it is available.
  void WhenThere(uint64_t handle,
                 const std::function<void(absl::StatusOr<runtime::ValuePointer>)>& done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // session_journal.cc
  bool wants_protection() const { return identity_.snapshot_interval > absl::ZeroDuration(); }
  // Records an operation before it is executed, if its outcome follows from the session's state.
  void JournalFirst(uint64_t sequence, const Operation& operation) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string HeadOf(uint64_t sequence) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Records an operation before any of its effects is visible. `operation` is encoded.
  void JournalExecuted(uint64_t sequence, absl::string_view operation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets that the journal has these blobs, because an operation used or released them: they are
  // recorded again when they are sent again.
  void ForgetBlobs(const std::vector<std::string>& names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JournalWrite(uint64_t sequence, absl::string_view operation,
                    const std::vector<std::string>& blobs,
                    const std::vector<absl::string_view>& bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void JournalRefusedDefinition(uint64_t sequence, const DefineProgram& operation,
                                const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendToJournal(absl::Span<const absl::string_view> record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends a large record; called without the lock, because it takes long.
  void AppendMuch(const std::shared_ptr<Journal>& journal,
                  absl::Span<const absl::string_view> record) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseProtection(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An executed operation has failed later, which the journal does not record.
  void FailedLate(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsReplaying() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Fail, and records the refusal in the journal.
  void Refuse(uint64_t sequence, absl::Span<const uint64_t> handles, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // session_snapshot.cc
  struct Draft {
    SessionImage image;
    std::shared_ptr<Journal> journal;
  };
  absl::StatusOr<Draft> BeginImage() ABSL_LOCKS_EXCLUDED(mutex_);
  // session_replay.cc
  absl::Status ReplayOne(ExecutedRecord& record, const JournalSummary& summary,
                         const std::function<bool()>& gives_up) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayOne(CancelledRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayOne(BlobRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayOne(TakenOverRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReplayOne(BlobsDeletedRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AwaitReplayed(int64_t unfinished_max, const std::function<bool()>& gives_up)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RestoreBlob(const std::string& name, std::string data);
  // session_detach.cc
  absl::Status TakeName(DetachAs& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string IdOf(uint64_t generation) const;
  static absl::Status TakenOver();
  // session_image.cc
  // True if each executed operation either has been answered or is in flight, and none is between
  // the two.
  bool IsSettled(uint64_t executed) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<SessionImage> MakeImage(uint64_t executed) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Fills in the fields that every image has, except the blobs.
  void Describe(SessionImage* image) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddBlobs(SessionImage* image) const;
  absl::StatusOr<SessionImage> MakeImageOfResumption() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // session_resume.cc
  absl::Status RestoreAll(ByteSource& bytes, Patience& patience)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RestoreValues(ByteSource& bytes, Patience& patience)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RestoreBlobs(ByteSource& bytes);
  absl::Status RestorePrograms() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RestoreOperations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestoreName() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static int64_t BytesOf(const std::vector<NamedHandle>& tensors);
  absl::Status RestoreHandles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Redo(uint64_t sequence, size_t pending, const SessionImage::Run& run);
  void Redo(uint64_t sequence, size_t pending, const SessionImage::Definition& definition);
  void Redo(uint64_t sequence, size_t pending, const SessionImage::Read& read);
  void Redo(uint64_t sequence, size_t pending, const SessionImage::Barrier& barrier);
  void Redo(uint64_t sequence, size_t pending, const SessionImage::Move& move);
  absl::StatusOr<MadeRun> MakeAgain(uint64_t sequence, size_t pending,
                                    const SessionImage::Run& run);
  // Fails the results of a run that cannot be executed again.
  void FailResults(size_t pending, const SessionImage::Run& run,
                   const runtime::ValuePointer& failed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndResuming();

  void AwaitDefinition(uint64_t sequence, std::shared_ptr<const runtime::GraphSource> source,
                       const std::shared_ptr<runtime::ProgramFuture>& future,
                       runtime::Admission admission);
  void AwaitRead(uint64_t sequence, const runtime::ValuePointer& value);
  // Fails the operation and the handles that it would have bound.
  void Fail(uint64_t sequence, absl::Span<const uint64_t> handles, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);

  const Identity identity_;
  const std::shared_ptr<User> user_;
  const std::shared_ptr<memory::Account> host_;
  const memory::Charge charge_;  // for this object
  const Services services_;
  UsedDevices devices_;
  // Has its own lock, which is taken after this object's.
  Executor executor_;

  // Taken before the locks of the executor, the journal and the blobs. No thread holds the locks of
  // two sessions.
  mutable absl::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);  // the status for later requests
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;                 // closed_, but its state is kept
  absl::Time expires_ ABSL_GUARDED_BY(mutex_);                  // by the steady clock
  std::shared_ptr<Sink> sink_ ABSL_GUARDED_BY(mutex_);
  bool end_after_answers_ ABSL_GUARDED_BY(mutex_) = false;
  bool refused_more_ ABSL_GUARDED_BY(mutex_) = false;
  AnswerLog log_ ABSL_GUARDED_BY(mutex_);
  UnfinishedOperations unfinished_ ABSL_GUARDED_BY(mutex_);
  HandleTable handles_ ABSL_GUARDED_BY(mutex_);
  // Values whose bytes are being copied to the device.
  absl::flat_hash_set<runtime::ValuePointer> uploads_ ABSL_GUARDED_BY(mutex_);
  ProgramTable programs_ ABSL_GUARDED_BY(mutex_);
  InFlightTable in_flight_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Resumption> resumption_ ABSL_GUARDED_BY(mutex_);
  uint64_t resumed_through_ ABSL_GUARDED_BY(mutex_) = 0;  // executed before the restoration
  UnfinishedRuns unfinished_runs_ ABSL_GUARDED_BY(mutex_);
  // Cancels that were received and not executed, by this daemon or the previous one; no more than
  // the unfinished operations.
  std::deque<SessionImage::Cancelled> cancelled_ ABSL_GUARDED_BY(mutex_);
  struct Detached {
    std::string name;
    absl::Duration keep;
    std::vector<NamedHandle> tensors;
    memory::Charge charge;
  };
  std::optional<Detached> detached_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // Over all received operations, executed or not.
  uint64_t highest_handle_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t highest_program_ ABSL_GUARDED_BY(mutex_) = 0;
  // The state that makes the session survive this daemon.
  struct Protection {
    std::shared_ptr<Journal> journal;  // null: not begun yet, or discarded
    bool has_image = false;            // the session is protected
    uint64_t image_number = 0;         // SessionImage::journal
    int64_t image_bytes = 0;
    absl::Time image_time = absl::InfinitePast();
    absl::Time due = absl::InfinitePast();
    absl::Time begun = absl::InfinitePast();  // the last attempt at an image, successful or not
    uint64_t last_number = 0;                 // of its journal segments so far
    // Content-addressed blobs that the journal has and the session has owned since; at most
    // kBlobsMax.
    absl::flat_hash_set<std::string> blobs;
    uint64_t forgotten = 0;  // number of removals from `blobs`
    absl::Status lost;       // why protection was lost; cleared by TakeProtectionLoss
  };
  Protection protection_ ABSL_GUARDED_BY(mutex_);
  bool replaying_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status replay_error_ ABSL_GUARDED_BY(mutex_);
  int64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_H_
