// The folder of sessions that a daemon has kept for the next one, or keeps as they go on: an image
// each, and a journal of what came after it (journal.h).
#ifndef KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_
#define KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_

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
#include "server/sessions/folder_use.h"
#include "server/sessions/image.h"
#include "server/sessions/journal.h"
#include "server/sessions/sealed_file.h"

namespace kiln::sessions {

// Which start of the machine this is; empty if it does not tell.
std::string ThisBoot();

// Thread-safe, but List and Save are for one thread at a time.
class KeptSessions {
 public:
  struct Options {
    std::string folder;       // made, with those above it, if it is not there; of this user alone
    int64_t limit_bytes = 0;  // of all files
    // Of a user's files; 0, or no function: no other limit.
    std::function<int64_t(const std::string& user)> user_limit_bytes{};
    std::string boot{};  // which start of the machine this is; journals of another are refused
  };
  struct Kept {
    std::string path;
    SessionImage image;                  // without the bytes
    std::vector<std::string> journal{};  // the paths of its segments, in order
    std::string name{};                  // under which it was left; empty if it was not
  };

  // Holds the folder until it is destroyed. FAILED_PRECONDITION: another daemon holds it, or others
  // can reach it. UNAVAILABLE: it cannot be made.
  static absl::StatusOr<std::unique_ptr<KeptSessions>> Open(Options options);
  ~KeptSessions();

  // What is there. A file under another name than its session's own is a copy, and is left alone.
  // What cannot be read is removed, but for what a newer daemon has written; the log
  // has a line for each. So are segments that are out of date.
  std::vector<Kept> List();
  // The bytes of one. The errors of SealedReader.
  absl::StatusOr<std::unique_ptr<SealedReader>> Read(const Kept& kept) const;
  JournalReader ReadJournal(const Kept& kept) const;
  // It does not come back, whatever happens.
  absl::Status Remove(const Kept& kept);
  // How many daemons have begun to restore it and did not get to ForgetAttempts, this one included:
  // what it does may be what ends them.
  static int CountAttempt(const Kept& kept);
  static void ForgetAttempts(const Kept& kept);

  // An image of a session that goes on, but for Place; the same errors as Save's. It need not
  // outlive the machine, since its journal does not. What a user's sessions take as they go on is
  // no more than what is still free then, so that nobody keeps others from it.
  absl::StatusOr<std::unique_ptr<SealedWriter>> Draft(const SessionImage& image,
                                                      Patience& patience) const;
  // For what comes after an image. `last_number` and `last_tag` as in Journal. Its bytes are the
  // user's as those of images are, to a mebibyte for each session.
  std::shared_ptr<Journal> NewJournal(const SessionIdentity& identity, const std::string& user,
                                      uint64_t last_number, std::string last_tag) const;

  // The session's earlier files give way to it. On the disk for good, or an error:
  // RESOURCE_EXHAUSTED if the files, or the user's, would take more than they may;
  // DEADLINE_EXCEEDED if a device hangs.
  absl::Status Save(const SessionImage& image, Patience& patience) ABSL_LOCKS_EXCLUDED(mutex_);
  // From here on only Save writes to the folder, so that what the files take is known without
  // another look at all of them for each session.
  void BeginSavingAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // What a user's files take. Thread-safe.
  int64_t BytesOf(const std::string& user) const;
  // In all looks at the folder that asked what the files take; for tests.
  int64_t files_looked_at() const { return files_looked_at_; }

 private:
  KeptSessions(Options options, cache::Secret secret, int lock)
      : options_(std::move(options)), secret_(std::move(secret)), lock_(lock) {}
  JournalPlace PlaceOf(const SessionIdentity& identity, const std::string& user) const;
  FolderUse Look() const;
  // `except`: the stem of a session whose files give way. `goes_on`: see Draft.
  absl::Status CheckRoom(const std::string& user, const std::string& except, int64_t bytes,
                         bool goes_on) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRoomIn(const FolderUse& use, const std::string& user, const std::string& except,
                           int64_t bytes, bool goes_on) const;
  // The image, but for its end.
  absl::StatusOr<std::unique_ptr<SealedWriter>> Write(const SessionImage& image, bool goes_on,
                                                      Patience& patience) const;
  void AddSegments(std::vector<Kept>* all) const;

  const Options options_;
  const cache::Secret secret_;
  const int lock_;
  mutable std::atomic<int64_t> files_looked_at_{0};
  mutable absl::Mutex mutex_;
  std::optional<FolderUse> use_ ABSL_GUARDED_BY(mutex_);  // since BeginSavingAll
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_KEPT_SESSIONS_H_
