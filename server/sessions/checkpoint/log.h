// The log of what a session has done since its checkpoint was taken, in files beside the
// checkpoint. The next daemon executes these records again in order, which restores the session as
// it was when this daemon was killed.
//
// A log is a sequence of segments, which are numbered files. A new segment begins with each
// checkpoint; the checkpoint's description has the segment's number. So the rename that installs
// the checkpoint also decides which segments are out of date. docs/formats/session-log.md specifies
// the frames of a segment. Large records are written in parts, so that no thread waits long for the
// lock.
//
// Writes are not flushed to the disk: they survive the process, but not the machine. After a reboot
// the log is refused.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_LOG_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_LOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/cache/secret.h"

namespace kiln::sessions {

// Identifies the session of a log, and where its files are.
struct LogLocation {
  std::string stem;     // its files are STEM.session, STEM.1.journal, …
  std::string session;  // the secret id
  std::string boot;     // the boot id of the machine
};
// Returns the path of a segment.
std::string SegmentPath(const std::string& stem, uint64_t number);

// Thread-safe. The destructor keeps the files; see Discard.
class SessionLog {
 public:
  // Returns OK if `bytes` more may be written to the disk.
  using Room = std::function<absl::Status(int64_t bytes)>;

  // Requires: `secret` outlives this; `room` is callable. The first segment will have the number
  // after `last_number`, whose last tag is `last_tag` (empty: there is none).
  SessionLog(LogLocation location, const cache::Secret& secret, Room room, uint64_t last_number,
             std::string last_tag);
  ~SessionLog();

  // Begins a new segment, which gets all later records. Its header has `name`, the name of the
  // parked session.
  absl::Status Begin(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends one record, given in pieces. Once it has returned OK, the record outlives this process.
  // Records appended concurrently may precede it. After an error the segment may end with a part of
  // the record, so the caller must call Discard.
  absl::Status Append(absl::Span<const absl::string_view> record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the segments before this number, which are out of date. Requires: it is above 0, and at
  // most that of the current segment.
  void ForgetBefore(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes all files, the checkpoint first, and refuses later writes.
  void Discard() ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of the current segment.
  uint64_t number() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The bytes in the segments from `number` on.
  int64_t bytes_since(uint64_t number) const ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string& stem() const { return location_.stem; }

 private:
  struct Segment {
    uint64_t number = 0;
    int64_t bytes = 0;
  };
  absl::Status AppendFrame(absl::string_view head, absl::Span<const absl::string_view> content)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(absl::Span<const absl::string_view> content)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The segments are consecutive up to the current one, which is open until the log is discarded.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const LogLocation location_;
  const cache::Secret& secret_;
  const Room room_;
  // Locked after the session's lock; no method of a session is called with it held.
  mutable absl::Mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  bool discarded_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t number_ ABSL_GUARDED_BY(mutex_);
  std::string tag_ ABSL_GUARDED_BY(mutex_);
  uint64_t large_records_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t granted_ ABSL_GUARDED_BY(mutex_) = 0;            // writable before room_ is asked again
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mutex_);  // begun by this object and not forgotten
};

// Reads the segments of one session. Not thread-safe.
class SessionLogReader {
 public:
  // Requires: `secret` outlives this. `paths` are those of all segments from `first` on, in order.
  SessionLogReader(LogLocation location, const cache::Secret& secret, uint64_t first,
                   std::vector<std::string> paths);
  ~SessionLogReader();
  SessionLogReader(const SessionLogReader&) = delete;
  SessionLogReader& operator=(const SessionLogReader&) = delete;

  // Returns the next record; nullopt after the last. DATA_LOSS: the segments are damaged, of
  // another session, or from before a reboot. UNIMPLEMENTED: a newer daemon wrote them.
  // UNAVAILABLE: they cannot be read.
  absl::StatusOr<std::optional<std::string>> Next();

  // The number of the last segment that was opened, and the last tag that was read.
  uint64_t last_number() const { return number_; }
  const std::string& last_tag() const { return tag_; }

  // Returns the name in the header of the segment; empty if there is none or it cannot be read.
  static std::string NameIn(const std::string& path, const cache::Secret& secret);

 private:
  absl::Status OpenNext();
  absl::StatusOr<std::optional<std::string>> ReadFrame();
  // Returns the record that ends with this frame; nullopt if the record continues.
  absl::StatusOr<std::optional<std::string>> Join(std::string frame);
  absl::Status Damaged(absl::string_view how) const;

  const LogLocation location_;
  const cache::Secret& secret_;
  const std::vector<std::string> paths_;
  size_t next_ = 0;  // of paths_
  uint64_t number_;
  std::string tag_;
  std::map<uint64_t, std::string> parts_;  // of incomplete large records, by their numbers
  int file_ = -1;
  int64_t left_ = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_LOG_H_
