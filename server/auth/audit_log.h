// A log of administrative actions, in a file of the state folder.
//
// One line of JSON for each event:
//   {"number":7,"time":"2026-01-02T03:04:05.678Z","user":"ann","action":"drain","subject":"cpu:0",
//   "outcome":"ok"}
#ifndef KILN_SERVER_AUTH_AUDIT_LOG_H_
#define KILN_SERVER_AUTH_AUDIT_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace kiln::auth {

struct AuditEvent {
  int64_t number = 0;  // increasing, also across restarts
  absl::Time time;     // in milliseconds
  std::string user;
  std::string action;  // "add_user"
  std::string subject;
  std::string outcome;  // "ok", or the error's reason
};

// Returns the line without its newline. Control characters, line breaks and invalid UTF-8 are
// replaced by visible text (proto/text/printable.h), and each value is shortened to at most 200
// bytes of the original, so that no value can be mistaken for another field or event.
std::string ToJson(const AuditEvent& event);
// Returns nullopt if ToJson did not write the line.
std::optional<AuditEvent> FromJson(absl::string_view line);

// Thread-safe. When the file would exceed `bytes_max` it is renamed to `path`.1, replacing an
// earlier one.
class AuditLog {
 public:
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path,
                                                        int64_t bytes_max = 8 << 20);
  ~AuditLog();

  // Assigns the number. An event that cannot be written goes to the daemon's log instead.
  void Append(AuditEvent event) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns at most `events_max` events with numbers above `after`, not before `since`, oldest
  // first. Does not block Append.
  std::vector<AuditEvent> Read(int64_t after, absl::Time since, int events_max) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t last_number() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AuditLog(std::string path, int64_t bytes_max) : path_(std::move(path)), bytes_max_(bytes_max) {}
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int64_t bytes_max_;
  mutable absl::Mutex mutex_;
  int file_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_AUDIT_LOG_H_
