// What a session has done since its image was taken, in files beside the image: the next daemon has
// the session as it was when this one was killed once it has done these records again, in order.
//
// A journal is a row of segments, which are files with numbers. A new one begins with each image,
// which names it in its description; so it is decided there, with the rename that puts the image in
// place, which segments are out of date. A segment is a row of frames:
//
//   size     8 bytes, little-endian, of the record
//   ~size    8 bytes, so that damage here is not taken for a frame that was cut
//   content
//   tag      32 bytes: HMAC-SHA256 of the tag before, and all of this frame
//
// The first frame is the segment's header. It has the last tag of the segment before: nothing can
// be taken out, but from the end. The others have a record each, or a part of a large one, so that
// nobody waits long for the lock. A last frame that is cut was being written when the daemon was
// killed, and what it stands for was not answered.
//
// Nothing waits for the disk: what was written outlives the process, but not the machine. After
// another start of the machine a journal is refused.
#ifndef KILN_SERVER_SESSIONS_JOURNAL_H_
#define KILN_SERVER_SESSIONS_JOURNAL_H_

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

// Of which session a journal is, and where.
struct JournalPlace {
  std::string stem;     // its files are STEM.session, STEM.1.journal, …
  std::string session;  // the secret id
  std::string boot;     // which start of the machine this is
};
// The path of a segment.
std::string SegmentPath(const std::string& stem, uint64_t number);

// Thread-safe. Files that Discard has not removed stay.
class Journal {
 public:
  // Whether so many bytes more may be written to the disk.
  using Room = std::function<absl::Status(int64_t bytes)>;

  // `secret` outlives this. The first segment's number is behind `last_number`, whose last tag is
  // `last_tag` (empty: there is none).
  Journal(JournalPlace place, const cache::Secret& secret, Room room, uint64_t last_number,
          std::string last_tag);
  ~Journal();

  // Records go to a new segment from here on. `name`, under which the session was left, stands in
  // its header.
  absl::Status Begin(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // One record, in pieces. Once it has returned OK, the record outlives this process. Those that
  // are appended meanwhile may stand before it. After an error the segment may end with a part of
  // it, so Discard must follow.
  absl::Status Append(absl::Span<const absl::string_view> record) ABSL_LOCKS_EXCLUDED(mutex_);
  // The segments before this number are out of date, and go.
  void ForgetBefore(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // All files go, the image first; nothing is written any more.
  void Discard() ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the segment that is written.
  uint64_t number() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of all segments since `number`.
  int64_t bytes_since(uint64_t number) const ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string& stem() const { return place_.stem; }

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

  const JournalPlace place_;
  const cache::Secret& secret_;
  const Room room_;
  // Taken after a session's; nothing of a session is called with it.
  mutable absl::Mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  bool discarded_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t number_ ABSL_GUARDED_BY(mutex_);
  std::string tag_ ABSL_GUARDED_BY(mutex_);
  uint64_t large_records_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t granted_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes that may be written without asking
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mutex_);  // that this has begun and not forgotten
};

// Reads the segments of one session. For one thread at a time.
class JournalReader {
 public:
  // `secret` outlives this. The paths are those of the segments from `first` on, in order; none is
  // missing.
  JournalReader(JournalPlace place, const cache::Secret& secret, uint64_t first,
                std::vector<std::string> paths);
  ~JournalReader();
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;

  // Nothing: that was the last. DATA_LOSS: they are damaged, of another session, or of the time
  // before the machine was started anew. UNIMPLEMENTED: a newer daemon wrote them. UNAVAILABLE:
  // they cannot be read.
  absl::StatusOr<std::optional<std::string>> Next();

  // Of what has been read.
  uint64_t last_number() const { return number_; }
  const std::string& last_tag() const { return tag_; }

  // The name in the header of the segment; empty if there is none, or it cannot be read.
  static std::string NameIn(const std::string& path, const cache::Secret& secret);

 private:
  absl::Status OpenNext();
  absl::StatusOr<std::optional<std::string>> ReadFrame();
  // The record that ends with this frame; nothing: it goes on.
  absl::StatusOr<std::optional<std::string>> Join(std::string frame);
  absl::Status Damaged(absl::string_view how) const;

  const JournalPlace place_;
  const cache::Secret& secret_;
  const std::vector<std::string> paths_;
  size_t next_ = 0;  // of paths_
  uint64_t number_;
  std::string tag_;
  std::map<uint64_t, std::string> parts_;  // of large records that go on, by their numbers
  int file_ = -1;
  int64_t left_ = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_JOURNAL_H_
