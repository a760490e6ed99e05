#include "server/sessions/closed_sessions.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/errors/errors.h"
#include "server/state/line_file.h"

namespace kiln::sessions {
namespace {

// A line per entry: digest, user, code, message, reason, then key and value of each detail;
// separated by tabs, and all except digest and code escaped.
constexpr char kHeader[] = "kiln ended sessions 1";
constexpr size_t kFixedFields = 5;

// True for errors inside the daemon, whose messages may name its files.
bool IsForTheLogAlone(const absl::Status& why) {
  return absl::IsDataLoss(why) || absl::IsUnavailable(why) || absl::IsInternal(why) ||
         absl::IsUnknown(why);
}

}  // namespace

absl::Status LostBecause(absl::string_view what, const absl::Status& why) {
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat(
          "the session and its tensors and programs are lost because ", what, ": ",
          IsForTheLogAlone(why) ? "see session_lost in the daemon's log" : why.message())),
      "SESSION_LOST", {{"cause", errors::Reason(why)}});
}

void ClosedSessions::Remember(const std::string& id, const std::string& user,
                              const absl::Status& why) {
  KILN_CHECK(!why.ok());
  Entry entry{Sha256Hex(id), user, errors::WithBoundedMessage(why)};
  absl::MutexLock lock(&mutex_);
  Add(std::move(entry));
}

void ClosedSessions::Add(Entry entry) {
  std::erase_if(entries_, [&](const Entry& other) { return other.digest == entry.digest; });
  const auto is_his = [&](const Entry& other) { return other.user == entry.user; };
  if (std::count_if(entries_.begin(), entries_.end(), is_his) >= std::ptrdiff_t{kUserEntriesMax}) {
    entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_his));
  } else if (entries_.size() >= kEntriesMax) {
    entries_.pop_front();
  }
  entries_.push_back(std::move(entry));
  KILN_VALIDATE(*this, entries_.size());
}

void ClosedSessions::Validate() const {
  KILN_CHECK_LE(entries_.size(), kEntriesMax);
  std::map<absl::string_view, size_t> of_users;
  std::set<absl::string_view> digests;
  for (const Entry& entry : entries_) {
    KILN_CHECK(!entry.why.ok()) << entry.digest;
    const bool is_new = digests.insert(entry.digest).second;
    KILN_CHECK(is_new) << entry.digest << " is there twice";
    const size_t of_user = ++of_users[entry.user];
    KILN_CHECK_LE(of_user, kUserEntriesMax) << entry.user;
  }
}

absl::Status ClosedSessions::Find(const std::string& id, const std::string& user) const {
  const std::string digest = Sha256Hex(id);
  absl::MutexLock lock(&mutex_);
  for (const Entry& entry : entries_)
    if (entry.digest == digest && entry.user == user) return entry.why;
  return absl::OkStatus();
}

std::string ClosedSessions::ToLine(const Entry& entry) {
  std::string line = absl::StrCat(
      entry.digest, "\t", absl::CEscape(entry.user), "\t", static_cast<int>(entry.why.code()), "\t",
      absl::CEscape(entry.why.message()), "\t", absl::CEscape(errors::Reason(entry.why)));
  for (const auto& [key, value] : errors::Details(entry.why))
    absl::StrAppend(&line, "\t", absl::CEscape(key), "\t", absl::CEscape(value));
  return line;
}

std::optional<ClosedSessions::Entry> ClosedSessions::FromLine(const std::string& line) {
  std::vector<std::string> fields = absl::StrSplit(line, '\t');
  if (fields.size() < kFixedFields || (fields.size() - kFixedFields) % 2 != 0) return std::nullopt;
  for (std::string& field : fields) {
    std::string text;
    if (!absl::CUnescape(field, &text)) return std::nullopt;
    field = std::move(text);
  }
  const auto is_hexadecimal = [](char c) { return absl::ascii_isxdigit(c); };
  if (!std::all_of(fields[0].begin(), fields[0].end(), is_hexadecimal)) return std::nullopt;
  int code = 0;
  if (!absl::SimpleAtoi(fields[2], &code) || code <= 0) return std::nullopt;
  absl::Status why =
      errors::WithReason(absl::Status(static_cast<absl::StatusCode>(code), fields[3]), fields[4]);
  for (size_t i = kFixedFields; i < fields.size(); i += 2)
    why = errors::WithReason(std::move(why), fields[4], {{fields[i], fields[i + 1]}});
  return Entry{fields[0], fields[1], std::move(why)};
}

absl::Status ClosedSessions::Load(const std::string& path) {
  const auto lines = state::ReadLines(path, kHeader);
  if (!lines.ok()) return lines.status();
  std::vector<Entry> entries;
  for (const std::string& line : *lines) {
    auto entry = FromLine(line);
    if (!entry) return state::Damaged(path);
    entries.push_back(*std::move(entry));
  }
  absl::MutexLock lock(&mutex_);
  for (Entry& entry : entries) Add(std::move(entry));
  return absl::OkStatus();
}

absl::Status ClosedSessions::Save(const std::string& path) const {
  std::vector<std::string> lines;
  {
    absl::MutexLock lock(&mutex_);
    for (const Entry& entry : entries_) lines.push_back(ToLine(entry));
  }
  return state::WriteLines(path, kHeader, lines);
}

}  // namespace kiln::sessions
