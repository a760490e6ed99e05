// One client: its tensors and programs, and its operations in order, each exactly once.
//
// Operations are executed one after another in the order of their sequence numbers. Executing
// means: handles are bound, runs are queued; nothing waits for the device. Only a Run whose program
// still compiles, or whose inputs are on their way to the device, holds up what comes after it.
// Answers go out when an operation has ended, in any order.
//
// A failed operation poisons the new handles it would have bound: what uses them fails with the
// same code and reason. A Run that fails before it starts (wrong inputs, no memory) changes no
// state: the inputs it would have updated keep their values. One that fails on the device leaves
// the updated inputs failed too.
//
// Cancel takes effect when it is received, ahead of what waits. The runs that it cancels are the
// last of those it names: runs go to the device in order, and one that is there whole goes on to
// its end, but what has been handed over in part stops at the next slice. Each of them fails with
// CANCELLED, and with it its outputs. It changes no state: the inputs it would have updated keep
// their values, all of them or, if it went on, none. What comes after the Cancel sees that.
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
#include "server/fairness/gang_order.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program_cache.h"
#include "server/runtime/run.h"
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

// Bounds on what one session makes the daemon hold.
struct SessionLimits {
  int64_t read_bytes = 1 << 20;          // of a Read's answer; larger values go through Download
  int64_t unfinished_operations = 4096;  // received and not answered; then the stream is not read
  int64_t unfinished_bytes = 64 << 20;   // of them and their graphs; likewise
  int64_t unacknowledged_answers = 1 << 17;  // then the stream ends
  int64_t unacknowledged_bytes = 16 << 20;
  size_t bindings_per_program = 256;  // remembered; the least recently used go first
};

// What sessions stand on; all of it outlives them.
struct Services {
  runtime::ProgramCache* programs = nullptr;
  buffers::BlobStore* blobs = nullptr;
  metrics::Metrics* metrics = nullptr;
  runtime::ThreadPool* copies = nullptr;  // for copies that may block
  Clock clock;
  // Of GraphSource::Wire, for programs that were kept.
  std::function<absl::StatusOr<std::shared_ptr<const runtime::GraphSource>>(absl::string_view,
                                                                            memory::Account&)>
      unpack_graph;
  SessionLimits limits;
  SessionNames* names = nullptr;  // the registry's
  // All of the daemon's, and the order in which programs on several reach them.
  std::vector<runtime::ManagedDevice*> devices = {};
  fairness::GangOrder* gang_order = nullptr;
  const KeptSessions* kept = nullptr;             // null: no session can be protected
  absl::Duration max_keep = absl::Hours(7 * 24);  // of a detached session
  std::shared_ptr<memory::HostMemory> host =
      std::make_shared<memory::HostMemory>(int64_t{1} << 30, 1024);
};

// Thread-safe. Shared: runs in flight keep it.
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
    // Of the last image; infinite past while the session would not survive a kill.
    absl::Time protected_since = absl::InfinitePast();
  };

  Session(Identity identity, std::shared_ptr<User> user, runtime::ManagedDevice& device,
          Services services, std::shared_ptr<memory::Account> host, memory::Charge charge);

  const Identity& identity() const { return identity_; }
  const User& user() const { return *user_; }
  // Of all the user's sessions.
  quota::Meter& uploads_of_user() const { return user_->uploads; }
  quota::Gate& upload_bytes_of_user() const { return user_->upload_bytes; }
  bool is_closed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The one that it was opened on.
  runtime::ManagedDevice& device() const { return *devices_.home().device; }
  // That one, and all others that it has used.
  UsedDevices& devices() { return devices_; }
  // The device was lost and works again: handles whose values were on it, or in parts on it, fail
  // from here on.
  void DropLost(const runtime::ManagedDevice& device) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whom everything is charged to that the daemon holds for it in host memory.
  const std::shared_ptr<memory::Account>& host() const { return host_; }
  // True if one of its program ids names `program`.
  bool Uses(const runtime::Program& program) const ABSL_LOCKS_EXCLUDED(mutex_);
  Snapshot GetSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);
  // What its programs are at that it waits for.
  std::vector<ProgramTable::Waiting> FirstCalls() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return programs_.FirstCalls();
  }
  // What it has of a resource, for refusals (quota::WithHolders): of device memory its largest
  // values.
  std::vector<quota::Holder> HoldersOf(quota::Resource resource) const ABSL_LOCKS_EXCLUDED(mutex_);

  // A new stream takes over; an earlier one ends with ABORTED. Pushes Attached and the answers that
  // were not acknowledged. A closed session says why it was closed; NOT_FOUND if the user did it.
  // ABORTED: it was taken over since it had this generation.
  absl::Status Attach(std::shared_ptr<Sink> sink, uint64_t acknowledged, uint64_t generation = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream has ended. The lease runs from here on, unless another stream has taken over.
  void Detach(const Sink* sink) ABSL_LOCKS_EXCLUDED(mutex_);
  // One operation of the attached stream. An error ends the stream, not the session.
  // `travels_alone`: see UnfinishedOperations::Admit.
  absl::Status Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                      Operation operation, bool travels_alone = true) ABSL_LOCKS_EXCLUDED(mutex_);
  // The client sends no more on this stream; it ends once everything has been answered.
  void EndAfterAnswers(const Sink* sink) ABSL_LOCKS_EXCLUDED(mutex_);
  // False: do not read the stream until Sink::ReadMore is called.
  bool WantsMore() ABSL_LOCKS_EXCLUDED(mutex_);

  // `done` gets the handle's value once the operations up to `after_sequence` have been executed
  // and the value is there, or the error that keeps it from being there. It may be called at once.
  void WhenReadable(uint64_t handle, uint64_t after_sequence,
                    std::function<void(absl::StatusOr<runtime::ValuePointer>)> done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For a process that has found it by its name: numbers go on behind these. The session gets
  // another id; its stream, if there is one, ends with TAKEN_OVER, as does whoever uses an earlier
  // id.
  struct Takeover {
    struct Tensor {
      NamedHandle named;
      buffers::TensorType type;
      // Null: it lies on one device.
      std::shared_ptr<const buffers::Placement> placement;
      std::string device;  // then; empty for one that has failed
    };
    std::string id;
    uint64_t last_sequence = 0;
    uint64_t last_handle = 0;
    uint64_t last_program = 0;
    std::vector<Tensor> tensors;
  };
  absl::StatusOr<Takeover> TakeOver() ABSL_LOCKS_EXCLUDED(mutex_);
  // How often it has been taken over, which is a part of its id. ABORTED, TAKEN_OVER, if it is more
  // often.
  absl::Status CheckGeneration(uint64_t generation) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Renew() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Expired() const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK while it lives; else what Attach says.
  absl::Status CheckOpen() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing is executed any more; what comes waits. Returns once nothing is being executed.
  void Pause() { executor_.Pause(); }
  // For a daemon that stops, after Pause. Nothing is answered any more, and whoever asks hears
  // `reason`; Close ends it. Its device takes nothing from its queue any more and is idle, or else
  // hangs; a run that is just ending there is waited for no longer than `patience`.
  // FAILED_PRECONDITION, and nothing changes, if its state cannot be known.
  absl::StatusOr<SessionImage> Freeze(const absl::Status& reason, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether its state is whole on the disk, so that the next daemon has it if this one is killed.
  bool IsProtected() const ABSL_LOCKS_EXCLUDED(mutex_);
  // It wants to be protected, and TakeImage should be called.
  bool ImageIsDue() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes an image of it as it is between two operations, which takes the place of the earlier
  // one; from then on it is protected. It goes on meanwhile; while the image is written, the
  // tensors in it stay in memory. For one thread at a time. After an error it is as it was before:
  // protected by the earlier image and the journal since, or not.
  absl::Status TakeImage(Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // Why it is not protected any more; OK if it is, or this has been asked since.
  absl::Status TakeProtectionLoss() ABSL_LOCKS_EXCLUDED(mutex_);
  // A blob is its from here on. Before its client hears of it.
  void HoldsBlob(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // These are not any more. Likewise.
  void DeletedBlobs(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

  // For a new session, which nobody else knows yet: it becomes the one of the image, but executes
  // nothing before Resume. No limit of its user's holds, nor that of host memory or uploads: what
  // was there stays. The errors of device memory, of copies and of `bytes`; the session is of no
  // use then.
  absl::Status Restore(std::shared_ptr<const SessionImage> image, ByteSource& bytes,
                       Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does again what had not been answered, then what comes.
  void Resume() { ExecuteQueued(); }
  // Between Restore and the first client: all that, and then what stands in the journal. DATA_LOSS:
  // the journal is damaged, or something does not come to what it had come to. Others: it may be
  // tried again, with another session; CANCELLED after `gives_up`.
  absl::Status Replay(JournalReader& journal, const JournalSummary& summary,
                      const std::function<bool()>& gives_up) ABSL_LOCKS_EXCLUDED(mutex_);
  // After Restore, and Replay if there was something: it is protected by what it was made of, and
  // goes on with that journal.
  void Protect(const SessionImage& image, const JournalReader& journal) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops everything and ends the stream with `status`. Runs on the device finish; nobody hears of
  // them. What protects it goes, unless it is frozen or `files_stay`: the next daemon has it then.
  void Close(const absl::Status& status, bool files_stay = false) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A run that has passed all checks.
  struct Plan {
    std::shared_ptr<const runtime::BoundProgram> program;
    std::vector<runtime::ValuePointer> inputs;
    std::shared_ptr<const ProgramOrigin> origin;
  };
  // What a restored session needs until it has done again what had not been answered.
  struct Resumption {
    std::shared_ptr<const SessionImage> image;
    std::vector<runtime::ValuePointer> values;  // of the image; null while they are not made
    std::vector<std::shared_ptr<const runtime::GraphSource>> sources;  // of its origins
    std::vector<std::shared_ptr<runtime::ProgramFuture>> programs;     // of its pending runs
  };

  void ExecuteQueued() { Executor::Run(std::shared_ptr<Executor>(shared_from_this(), &executor_)); }
  Executor::Steps Steps();
  // Its program's definition, or an input that is on its way to the device.
  Executor::AddWaiter MustWaitFor(uint64_t sequence, const RunProgram& run)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The program of a run that is made again.
  Executor::AddWaiter MustWaitFor(const sessions::Resume& resume) ABSL_LOCKS_EXCLUDED(mutex_);
  // The lease runs from now on. Returns how long.
  absl::Duration StartLease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With or without a name.
  absl::Duration FullLease() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Duration StartLease(absl::Duration lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Without the lock: whoever reads the log may be slow. `event` is what has happened.
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
                   const std::shared_ptr<runtime::QueuedRun>& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels runs that are queued, and has those fail that are not executed yet. True if queued ones
  // are to be dropped.
  bool CancelRuns(uint64_t sequence, const Cancel& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotCancelled(uint64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a Write needs until its bytes are on the device.
  struct Upload {
    runtime::ValuePointer value;
    std::string data;
    std::vector<buffers::BlobStore::Blob> blobs;
    std::vector<absl::string_view> pieces;  // of either
    memory::Charge charge;                  // for what is put together for devices
  };
  absl::StatusOr<std::shared_ptr<const Upload>> MakeUpload(uint64_t sequence, Write& operation);
  void FinishWrite(uint64_t sequence, const Upload& upload, const absl::Status& filled);
  // Of a value in parts: one after another.
  void FillPieces(uint64_t sequence, std::shared_ptr<const Upload> upload, size_t next,
                  int64_t offset);
  // session_move.cc
  // A pending value that lies there. NOT_FOUND: a device; INVALID_ARGUMENT: the placement does not
  // fit the type; those of Pool::Allocate.
  absl::StatusOr<runtime::ValuePointer> AllocateAt(std::shared_ptr<const buffers::TensorType> type,
                                                   const Place& place);
  bool LiesAt(const buffers::Value& value, const Place& place) const;
  // Of a program on one device, or in stages; runtime::CheckInputs looks at those of others.
  static absl::Status CheckLiesOn(const runtime::Program& program,
                                  absl::Span<const runtime::ValuePointer> inputs);
  void BeginMove(uint64_t sequence, const runtime::ValuePointer& source,
                 const runtime::ValuePointer& target);
  void FinishMove(uint64_t sequence, const runtime::ValuePointer& target,
                  const absl::Status& moved);
  // session_programs.cc
  struct MadeRun {
    std::shared_ptr<runtime::QueuedRun> run;
    std::function<void()> enqueue;  // without locks
  };
  absl::StatusOr<MadeRun> MakeRun(uint64_t sequence,
                                  const std::shared_ptr<const runtime::BoundProgram>& program,
                                  std::vector<runtime::ValuePointer> inputs, bool report_time);
  void FinishRead(uint64_t sequence, const runtime::ValuePointer& value);
  // What it took on each of these devices.
  void RunEnded(uint64_t sequence, bool report_time, const absl::Status& status,
                absl::Span<runtime::ManagedDevice* const> devices,
                absl::Span<const double> seconds);
  // `done` gets the handle's value once it is there.
  void WhenThere(uint64_t handle,
                 const std::function<void(absl::StatusOr<runtime::ValuePointer>)>& done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // session_journal.cc
  bool wants_protection() const { return identity_.snapshot_interval > absl::ZeroDuration(); }
  // Of operations whose outcome follows from the session's state: before they are executed.
  void JournalFirst(uint64_t sequence, const Operation& operation) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string HeadOf(uint64_t sequence) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Before anything of the operation is seen. `operation` is encoded.
  void JournalExecuted(uint64_t sequence, absl::string_view operation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An operation has used these blobs, or released them: they are written down when they come
  // again.
  void ForgetBlobs(const std::vector<std::string>& names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JournalWrite(uint64_t sequence, absl::string_view operation,
                    const std::vector<std::string>& blobs,
                    const std::vector<absl::string_view>& bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void JournalRefusedDefinition(uint64_t sequence, const DefineProgram& operation,
                                const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendToJournal(absl::Span<const absl::string_view> record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Without the lock, because it is large.
  void AppendMuch(const std::shared_ptr<Journal>& journal,
                  absl::Span<const absl::string_view> record) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseProtection(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Something that had been executed has failed since, which the journal does not know.
  void FailedLate(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsReplaying() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Fail, for an operation of which the journal is to say that.
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
  absl::Status AwaitReplayed(int64_t most_unfinished, const std::function<bool()>& gives_up)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RestoreBlob(const std::string& name, std::string data);
  // session_detach.cc
  absl::Status TakeName(DetachAs& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string IdOf(uint64_t generation) const;
  static absl::Status TakenOver();
  // session_image.cc
  // Each operation that was executed has been answered or is in flight, and none is half of either.
  bool IsSettled(uint64_t executed) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<SessionImage> MakeImage(uint64_t executed) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // What every image says of the session as it is now, but for its blobs.
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
  // Of a run that cannot be done again.
  void FailResults(size_t pending, const SessionImage::Run& run,
                   const runtime::ValuePointer& failed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndResuming();

  void AwaitDefinition(uint64_t sequence, std::shared_ptr<const runtime::GraphSource> source,
                       const std::shared_ptr<runtime::ProgramFuture>& future,
                       runtime::Admission admission);
  void AwaitRead(uint64_t sequence, const runtime::ValuePointer& value);
  // The operation fails, and with it the handles it would have bound.
  void Fail(uint64_t sequence, absl::Span<const uint64_t> handles, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);

  const Identity identity_;
  const std::shared_ptr<User> user_;
  const std::shared_ptr<memory::Account> host_;
  const memory::Charge charge_;  // for this object
  const Services services_;
  UsedDevices devices_;
  // Has a lock of its own, which is taken after this object's.
  Executor executor_;

  // Taken before the locks of the executor, of the journal and of blobs, and never two sessions'.
  mutable absl::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);  // what is said of it since
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;                 // closed_, but holds what it had
  absl::Time expires_ ABSL_GUARDED_BY(mutex_);                  // by the steady clock
  std::shared_ptr<Sink> sink_ ABSL_GUARDED_BY(mutex_);
  bool end_after_answers_ ABSL_GUARDED_BY(mutex_) = false;
  bool refused_more_ ABSL_GUARDED_BY(mutex_) = false;
  AnswerLog log_ ABSL_GUARDED_BY(mutex_);
  UnfinishedOperations unfinished_ ABSL_GUARDED_BY(mutex_);
  HandleTable handles_ ABSL_GUARDED_BY(mutex_);
  // Values whose bytes are on their way to the device.
  absl::flat_hash_set<runtime::ValuePointer> uploads_ ABSL_GUARDED_BY(mutex_);
  ProgramTable programs_ ABSL_GUARDED_BY(mutex_);
  InFlightTable in_flight_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Resumption> resumption_ ABSL_GUARDED_BY(mutex_);
  uint64_t resumed_through_ ABSL_GUARDED_BY(mutex_) = 0;  // what a kept session had executed
  UnfinishedRuns unfinished_runs_ ABSL_GUARDED_BY(mutex_);
  // Received and not executed, by this daemon or the one before it; no more than unfinished
  // operations.
  std::deque<SessionImage::Cancelled> cancelled_ ABSL_GUARDED_BY(mutex_);
  struct Detached {
    std::string name;
    absl::Duration keep;
    std::vector<NamedHandle> tensors;
    memory::Charge charge;
  };
  std::optional<Detached> detached_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of all that were received, whether they have been executed or not.
  uint64_t highest_handle_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t highest_program_ ABSL_GUARDED_BY(mutex_) = 0;
  // What makes the session survive this daemon.
  struct Protection {
    std::shared_ptr<Journal> journal;  // null: there is none yet, or not any more
    bool has_image = false;            // and so it is protected
    uint64_t image_number = 0;         // SessionImage::journal
    int64_t image_bytes = 0;
    absl::Time image_time = absl::InfinitePast();
    absl::Time due = absl::InfinitePast();
    absl::Time begun = absl::InfinitePast();  // the last image, whether it came to be or not
    uint64_t last_number = 0;                 // of its journals so far
    // Content-addressed ones that the journal has, and that are held since; at most kMostBlobs.
    absl::flat_hash_set<std::string> blobs;
    uint64_t forgotten = 0;  // how often something was taken out of `blobs`
    absl::Status lost;       // why it is not protected any more, until somebody asks
  };
  Protection protection_ ABSL_GUARDED_BY(mutex_);
  bool replaying_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status replay_error_ ABSL_GUARDED_BY(mutex_);
  int64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  double device_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_H_
