#include "server/auth/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"
#include "server/log/log.h"

namespace kiln::auth {
namespace {

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E3SZ";
constexpr size_t kLongestValue = 200;

// Printable leaves only these two characters for JSON to escape.
std::string Escaped(absl::string_view value) {
  std::string out;
  for (const char c : Printable(std::string(Shortened(std::string(value), kLongestValue)))) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

bool TakeString(absl::string_view* rest, absl::string_view key, std::string* value) {
  if (!absl::ConsumePrefix(rest, absl::StrCat(",\"", key, "\":\""))) return false;
  value->clear();
  while (!rest->empty()) {
    char c = rest->front();
    rest->remove_prefix(1);
    if (c == '"') return true;
    if (c == '\\') {
      if (rest->empty()) return false;
      c = rest->front();
      rest->remove_prefix(1);
    }
    value->push_back(c);
  }
  return false;
}

// Returns the event's number, without parsing the rest of the line.
std::optional<int64_t> NumberOf(absl::string_view line) {
  int64_t number = 0;
  if (!absl::ConsumePrefix(&line, "{\"number\":")) return std::nullopt;
  if (!absl::SimpleAtoi(line.substr(0, line.find(',')), &number)) return std::nullopt;
  return number;
}

// Reads events from the first `bytes` bytes of a file.
void ReadEvents(std::ifstream& file, int64_t bytes, int64_t after, absl::Time since,
                size_t events_max, std::vector<AuditEvent>* events) {
  std::string line;
  while (events->size() < events_max && bytes > 0 && std::getline(file, line)) {
    bytes -= static_cast<int64_t>(line.size()) + 1;
    if (NumberOf(line).value_or(0) <= after) continue;
    // A crash may have left a partial line.
    auto event = FromJson(line);
    if (event && event->time >= since) events->push_back(*std::move(event));
  }
}

std::string Rotated(const std::string& path) { return absl::StrCat(path, ".1"); }

}  // namespace

std::string ToJson(const AuditEvent& event) {
  return absl::StrCat("{\"number\":", event.number, ",\"time\":\"",
                      absl::FormatTime(kTimeFormat, event.time, absl::UTCTimeZone()),
                      "\",\"user\":\"", Escaped(event.user), "\",\"action\":\"",
                      Escaped(event.action), "\",\"subject\":\"", Escaped(event.subject),
                      "\",\"outcome\":\"", Escaped(event.outcome), "\"}");
}

std::optional<AuditEvent> FromJson(absl::string_view line) {
  AuditEvent event;
  if (!absl::ConsumePrefix(&line, "{\"number\":")) return std::nullopt;
  const size_t comma = line.find(',');
  if (comma == absl::string_view::npos || !absl::SimpleAtoi(line.substr(0, comma), &event.number))
    return std::nullopt;
  line.remove_prefix(comma);
  std::string time;
  if (!TakeString(&line, "time", &time) || !TakeString(&line, "user", &event.user) ||
      !TakeString(&line, "action", &event.action) ||
      !TakeString(&line, "subject", &event.subject) ||
      !TakeString(&line, "outcome", &event.outcome) || line != "}" ||
      !absl::ParseTime(kTimeFormat, time, absl::UTCTimeZone(), &event.time, nullptr))
    return std::nullopt;
  return event;
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         int64_t bytes_max) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, bytes_max));
  absl::MutexLock lock(&log->mutex_);
  for (const std::string& name : {Rotated(path), path}) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);)
      if (const auto event = FromJson(line)) log->last_number_ = event->number;
  }
  if (absl::Status status = log->OpenFile(); !status.ok()) return status;
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (file_ >= 0) close(file_);
}

absl::Status AuditLog::OpenFile() {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat found {};
  if (file_ < 0 || fstat(file_, &found) != 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", path_, ": ", strerror(errno)));
  bytes_ = found.st_size;
  char last = '\n';
  // If a crash left a partial line, ends it so that the next event starts a new one.
  if (bytes_ > 0 && pread(file_, &last, 1, bytes_ - 1) == 1 && last != '\n' &&
      write(file_, "\n", 1) == 1)
    ++bytes_;
  return absl::OkStatus();
}

void AuditLog::Rotate() {
  close(file_);
  rename(path_.c_str(), Rotated(path_).c_str());
  if (absl::Status status = OpenFile(); !status.ok())
    log::Error("audit_failed", {{"why", std::string(status.message())}});
}

void AuditLog::Validate() const {
  KILN_CHECK_GE(bytes_, 0);
  // Without a file nothing is written.
  KILN_CHECK(file_ >= 0) << path_;
}

void AuditLog::Append(AuditEvent event) {
  absl::MutexLock lock(&mutex_);
  event.number = ++last_number_;
  const std::string line = ToJson(event) + "\n";
  const auto size = static_cast<int64_t>(line.size());
  if (bytes_ > 0 && bytes_ + size > bytes_max_) Rotate();
  if (write(file_, line.data(), line.size()) == static_cast<ssize_t>(size)) {
    bytes_ += size;
    KILN_VALIDATE(*this, 1);
    return;
  }
  log::Error("audit_failed", {{"why", strerror(errno)}, {"event", line}});
  // A partial line would corrupt the next one.
  if (ftruncate(file_, bytes_) != 0) Rotate();
}

std::vector<AuditEvent> AuditLog::Read(int64_t after, absl::Time since, int events_max) const {
  std::ifstream earlier, current;
  int64_t bytes;
  {
    // Open files stay readable even if they are renamed meanwhile.
    absl::MutexLock lock(&mutex_);
    if (after >= last_number_) return {};
    earlier.open(Rotated(path_));
    current.open(path_);
    bytes = bytes_;
  }
  std::vector<AuditEvent> events;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  ReadEvents(earlier, kAll, after, since, static_cast<size_t>(events_max), &events);
  ReadEvents(current, bytes, after, since, static_cast<size_t>(events_max), &events);
  return events;
}

int64_t AuditLog::last_number() const {
  absl::MutexLock lock(&mutex_);
  return last_number_;
}

}  // namespace kiln::auth
