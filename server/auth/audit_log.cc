#include "server/auth/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/log/log.h"
#include "server/state/sync_folder.h"

namespace kiln::auth {
namespace {

// More than a line has.
constexpr int64_t kPartialBytesMax = 64 << 10;

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

std::string Rotated(const std::string& path) { return absl::StrCat(path, kEarlierSuffix); }

std::string TextOf(std::istream& file) {
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

absl::Status CannotOpen(const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, cache::Secret key,
                                                         int64_t bytes_max) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, std::move(key), bytes_max));
  absl::MutexLock lock(&log->mutex_);
  if (absl::Status status = log->OpenFile(); !status.ok()) return status;
  log->CutPartialLine();
  log->FindEnd();
  if (absl::Status status = log->OpenHead(); !status.ok()) return status;
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (file_ >= 0) close(file_);
  if (head_ >= 0) close(head_);
}

absl::Status AuditLog::OpenFile() {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat found {};
  if (file_ < 0 || fstat(file_, &found) != 0) return CannotOpen(path_);
  bytes_ = found.st_size;
  return absl::OkStatus();
}

void AuditLog::CutPartialLine() {
  const int64_t begin = std::max<int64_t>(0, bytes_ - kPartialBytesMax);
  std::string end(static_cast<size_t>(bytes_ - begin), '\0');
  if (pread(file_, end.data(), end.size(), begin) != static_cast<ssize_t>(end.size())) return;
  const std::string partial = end.substr(end.rfind('\n') + 1);  // npos + 1 is 0
  if (partial.empty()) return;
  if (partial.size() == static_cast<size_t>(kPartialBytesMax)) {
    // No crash has left that. The next event must not become a part of it.
    if (write(file_, "\n", 1) == 1) ++bytes_;
    return;
  }
  log::Warning("audit_line_cut", {{"file", path_}, {"line", Shown(partial)}});
  if (ftruncate(file_, bytes_ - static_cast<int64_t>(partial.size())) == 0)
    bytes_ -= static_cast<int64_t>(partial.size());
}

void AuditLog::FindEnd() {
  std::ifstream earlier(Rotated(path_)), current(path_), head(path_ + kHeadSuffix);
  AuditChain::Files files{.name = path_.substr(path_.rfind('/') + 1),
                          .earlier = earlier ? &earlier : nullptr,
                          .current = &current};
  if (head) files.head = TextOf(head);
  const AuditReport report = chain_.Verify(files);
  end_ = report.end;
  problem_at_start_ = report.problem;
  if (!report.problem) return;
  log::Error("audit_tampered", {{"file", report.problem->file},
                                {"line", absl::StrCat(report.problem->line)},
                                {"what", report.problem->what}});
  // The events after the problem count, too: the next number is above all that are there.
  for (const std::string& name : {Rotated(path_), path_}) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      const auto number = NumberOf(line);
      if (number && *number > end_.number && FromJson(line))
        end_ = {*number, chain_.TagIn(line).value_or(end_.tag)};
    }
  }
  const auto known = files.head ? chain_.ParseHead(*files.head) : std::nullopt;
  if (known && known->number > end_.number) end_ = *known;
}

absl::Status AuditLog::OpenHead() {
  const std::string path = path_ + kHeadSuffix;
  head_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (head_ < 0) return CannotOpen(path);
  // Also before the first event: a log without a head was tampered with. So a power failure must
  // not take it away and leave the log.
  WriteHead();
  if (fsync(head_) != 0) return CannotOpen(path);
  return state::SyncFolderOf(path);
}

// A crash leaves the old head or the new one, since a text of this size is in one sector. Not
// flushed: an old head on disk only means that a cut of the newest events is not noticed.
void AuditLog::WriteHead() {
  const std::string text = chain_.HeadText(end_);
  if (pwrite(head_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(head_, static_cast<off_t>(text.size())) != 0)
    log::Error("audit_failed", {{"why", strerror(errno)}, {"file", path_ + kHeadSuffix}});
}

void AuditLog::Rotate() {
  close(file_);
  rename(path_.c_str(), Rotated(path_).c_str());
  absl::Status status = OpenFile();
  if (status.ok()) status = state::SyncFolderOf(path_);
  if (!status.ok()) log::Error("audit_failed", {{"why", std::string(status.message())}});
}

void AuditLog::Validate() const {
  KILN_CHECK_GE(bytes_, 0);
  // Without a file nothing is written.
  KILN_CHECK(file_ >= 0) << path_;
  KILN_CHECK(!end_.tag.empty()) << path_;
}

std::string AuditLog::Previous() const {
  if (!end_.tag.empty()) return end_.tag;
  if (bytes_ == 0) return std::string(AuditChain::kNothing);
  // Lines of a version without a chain.
  std::ifstream file(path_);
  return AuditChain::SealOf(TextOf(file));
}

std::string AuditLog::NextLine(const AuditEvent& event) const {
  return chain_.Seal(event, Previous(), /*begins_file=*/bytes_ == 0) + "\n";
}

void AuditLog::Append(AuditEvent event) {
  absl::MutexLock lock(&mutex_);
  event.number = end_.number + 1;
  std::string line = NextLine(event);
  if (bytes_ > 0 && bytes_ + static_cast<int64_t>(line.size()) > bytes_max_) {
    Rotate();
    line = NextLine(event);
  }
  const auto size = static_cast<int64_t>(line.size());
  // On disk before the head, which must not name an event that a power failure has taken away.
  if (write(file_, line.data(), line.size()) == static_cast<ssize_t>(size) &&
      fdatasync(file_) == 0) {
    bytes_ += size;
    line.pop_back();
    end_ = {event.number, *chain_.TagIn(line)};
    WriteHead();
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
    if (after >= end_.number) return {};
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

AuditReport AuditLog::Verify() const {
  std::ifstream earlier, current, head;
  AuditChain::Files files;
  {
    absl::MutexLock lock(&mutex_);
    earlier.open(Rotated(path_));
    current.open(path_);
    head.open(path_ + kHeadSuffix);
    if (head) files.head = TextOf(head);
    files.bytes = bytes_;
    files.known = end_;
  }
  files.name = path_.substr(path_.rfind('/') + 1);
  if (earlier) files.earlier = &earlier;
  if (current) files.current = &current;
  return chain_.Verify(files);
}

int64_t AuditLog::last_number() const {
  absl::MutexLock lock(&mutex_);
  return end_.number;
}

}  // namespace kiln::auth
