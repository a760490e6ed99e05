// The folder of checkpoints for the next daemon: of sessions of a daemon that stopped, and of
// running ones. Each running session also has a log of what came after its checkpoint (log.h).
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_STORE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/cache/secret.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/checkpoint/folder_use.h"
#include "server/sessions/checkpoint/log.h"
#include "server/sessions/checkpoint/sealed_file.h"

namespace kiln::sessions {

// Returns the boot id of the machine; empty if it cannot be read.
std::string ThisBoot();

// The files of a saved session.
struct StoredSession {
  std::string path;
  Checkpoint checkpoint;           // without the bytes
  std::vector<std::string> log{};  // the paths of its segments, in order
  std::string name{};              // if parked, its name; otherwise empty
};

// Thread-safe, except that List and Save are for one thread at a time.
class CheckpointStore {
 public:
  struct Options {
    std::string folder;       // created with its parents if missing; accessible only to this user
    int64_t limit_bytes = 0;  // of all files
    // The limit for the files of one user; 0, or no function: no other limit.
    std::function<int64_t(const std::string& user)> user_limit_bytes{};
    std::string boot{};  // ThisBoot(); logs of another boot are refused
  };
  // Locks the folder until the object is destroyed. FAILED_PRECONDITION: another daemon holds it,
  // or other users can access it. UNAVAILABLE: it cannot be created.
  static absl::StatusOr<std::unique_ptr<CheckpointStore>> Open(Options options);
  ~CheckpointStore();

  // Lists the sessions in the folder. Removes damaged files, unfinished drafts and segments that
  // are out of date. Ignores session files that cannot be read, those of a newer daemon, and
  // copies: files with a name other than their session's own. Logs each session file that it does
  // not list.
  std::vector<StoredSession> List();
  // Opens the bytes of a session. Returns the errors of SealedReader.
  absl::StatusOr<std::unique_ptr<SealedReader>> Read(const StoredSession& stored) const;
  SessionLogReader ReadLog(const StoredSession& stored) const;
  // Removes the session durably: it is not listed again, even after a crash.
  absl::Status Remove(const StoredSession& stored);
  // Counts the daemons that have begun to restore the session and did not reach ForgetAttempts,
  // including this one: its operations may be what makes daemons crash.
  static int CountAttempt(const StoredSession& stored);
  static void ForgetAttempts(const StoredSession& stored);

  // Writes the checkpoint of a running session; the caller finishes with SealedWriter::Install.
  // Returns the same errors as Save. It need not survive a reboot, since its log does not. The
  // running sessions of a user may use no more disk than is still free afterwards, so that no user
  // prevents the checkpoints of others.
  absl::StatusOr<std::unique_ptr<SealedWriter>> Draft(const Checkpoint& checkpoint,
                                                      CopyDeadline& deadline) const;
  // Creates the log of what comes after a checkpoint. `last_number` and `last_tag` as in
  // SessionLog. The bytes count towards the user's disk limit like those of checkpoints, to within
  // 1 MiB for each session.
  std::shared_ptr<SessionLog> NewLog(const SessionIdentity& identity, const std::string& user,
                                     uint64_t last_number, std::string last_tag) const;

  // Writes the checkpoint durably and replaces the earlier files of the session. RESOURCE_EXHAUSTED
  // if all files, or the user's, would exceed their limit; DEADLINE_EXCEEDED if a device hangs.
  absl::Status Save(const Checkpoint& checkpoint, CopyDeadline& deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: from here on only Save writes to the folder. Scans the folder once, so that Save need
  // not scan all files again for each session.
  void BeginSavingAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // The bytes of a user's files. Thread-safe.
  int64_t BytesOf(const std::string& user) const;
  // The bytes of all files. Thread-safe.
  int64_t bytes() const;
  // The number of files seen in all scans of the folder for sizes; for tests.
  int64_t files_looked_at() const { return files_looked_at_; }

 private:
  CheckpointStore(Options options, cache::Secret secret, int lock)
      : options_(std::move(options)), secret_(std::move(secret)), lock_(lock) {}
  LogLocation LocationOf(const SessionIdentity& identity, const std::string& user) const;
  FolderUse Look() const;
  // `except`: the stem of a session whose files will be replaced. `goes_on`: see Draft.
  absl::Status CheckRoom(const std::string& user, const std::string& except, int64_t bytes,
                         bool goes_on) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRoomIn(const FolderUse& use, const std::string& user, const std::string& except,
                           int64_t bytes, bool goes_on) const;
  // Writes the checkpoint except for its end (SealedWriter::Seal).
  absl::StatusOr<std::unique_ptr<SealedWriter>> Write(const Checkpoint& checkpoint, bool goes_on,
                                                      CopyDeadline& deadline) const;
  void AddSegments(std::vector<StoredSession>* all) const;

  const Options options_;
  const cache::Secret secret_;
  const int lock_;
  mutable std::atomic<int64_t> files_looked_at_{0};
  mutable absl::Mutex mutex_;
  std::optional<FolderUse> use_ ABSL_GUARDED_BY(mutex_);  // since BeginSavingAll
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_STORE_H_
