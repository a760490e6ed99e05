// A log of administrative actions, in a file of the state folder.
//
// One line of JSON for each event (docs/formats/audit-log.md):
//   {"number":7,"time":"2026-01-02T03:04:05.678Z","user":"ann","action":"drain","subject":"cpu:0",
//   "outcome":"ok","previous":"…","tag":"…"}
#ifndef KILN_SERVER_AUTH_AUDIT_LOG_H_
#define KILN_SERVER_AUTH_AUDIT_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/auth/audit_chain.h"
#include "server/cache/secret.h"

namespace kiln::auth {

// Thread-safe. When the file would exceed `bytes_max` it is renamed to `path`.1, replacing an
// earlier one; the chain of seals goes on in the next file.
class AuditLog {
 public:
  // Verifies the log that is there, and logs "audit_tampered" if something is wrong
  // (problem_at_start). New events follow what was written last, so that a fault in the lines stays
  // visible. `key` seals the lines.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, cache::Secret key,
                                                        int64_t bytes_max = 8 << 20);
  ~AuditLog();

  // Assigns the number. An event that cannot be written goes to the daemon's log instead, and
  // leaves no gap. Returns when the event is on disk.
  void Append(AuditEvent event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns at most `events_max` events with numbers above `after`, not before `since`, oldest
  // first. Does not block Append.
  std::vector<AuditEvent> Read(int64_t after, absl::Time since, int events_max) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads all of the log. This process knows the last event, so it also notices a cut end if the
  // file of the head was put back. Does not block Append for long.
  AuditReport Verify() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The problem that Open has found. The caller appends an event about it: a damaged head is
  // replaced.
  const std::optional<AuditProblem>& problem_at_start() const { return problem_at_start_; }
  int64_t last_number() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AuditLog(std::string path, cache::Secret key, int64_t bytes_max)
      : path_(std::move(path)), bytes_max_(bytes_max), chain_(std::move(key)) {}
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cuts off a line that a crash has left without its end.
  void CutPartialLine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the event that the next one follows.
  void FindEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the next line's `previous`.
  std::string Previous() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::string NextLine(const AuditEvent& event) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int64_t bytes_max_;
  const AuditChain chain_;
  std::optional<AuditProblem> problem_at_start_;  // set by Open
  mutable absl::Mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  int head_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  AuditEnd end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_AUDIT_LOG_H_
