#include "server/auth/audit_chain.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "proto/digest/sha256.h"
#include "proto/text/printable.h"

namespace kiln::auth {
namespace {

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E3SZ";
constexpr size_t kLongestValue = 200;
constexpr size_t kTagDigits = 2 * cache::Authenticator::kTagBytes;
// Longer than any line that Seal writes.
constexpr size_t kLineBytesMax = 16 << 10;
constexpr absl::string_view kPreviousKey = ",\"previous\":\"";
constexpr absl::string_view kTagKey = ",\"tag\":\"";
// The text that a tag covers begins with one of these, so that no tag can be used in place of
// another kind.
constexpr absl::string_view kFirstOfFile = "first line of a file\n";
constexpr absl::string_view kNextLine = "next line\n";
constexpr absl::string_view kHead = "head of a log\n";

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

bool IsTag(absl::string_view text) {
  return text.size() == kTagDigits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// The parts of a line that Seal wrote.
struct SealedLine {
  absl::string_view covered;  // by the tag
  absl::string_view previous;
  absl::string_view tag;
};

// Returns nullopt if the line has no seal.
std::optional<SealedLine> Split(absl::string_view line) {
  constexpr size_t kEndBytes = 2;  // "}
  const size_t tag_bytes = kTagKey.size() + kTagDigits + kEndBytes;
  const size_t previous_bytes = kPreviousKey.size() + kTagDigits + 1;
  if (line.size() < tag_bytes + previous_bytes) return std::nullopt;
  SealedLine parts;
  parts.covered = line.substr(0, line.size() - tag_bytes);
  absl::string_view end = line.substr(parts.covered.size());
  absl::string_view before = parts.covered.substr(parts.covered.size() - previous_bytes);
  if (!absl::ConsumePrefix(&end, kTagKey) || !absl::ConsumeSuffix(&end, "\"}") ||
      !absl::ConsumePrefix(&before, kPreviousKey) || !absl::ConsumeSuffix(&before, "\"") ||
      !IsTag(end) || !IsTag(before))
    return std::nullopt;
  parts.previous = before;
  parts.tag = end;
  return parts;
}

// A daemon writes megabytes between two rotations, so the second attempt succeeds.
constexpr int kAttemptsMax = 100;

// Changes when one of the log's names becomes that of another file.
std::string NamesOf(const std::string& path) {
  std::string names;
  for (const std::string& name : {path, path + kEarlierSuffix}) {
    struct stat found {};
    if (stat(name.c_str(), &found) != 0) found = {};
    absl::StrAppend(&names, found.st_dev, " ", found.st_ino, " ");
    // Numbers of files are used again. The earlier file does not change after its last renaming.
    if (name != path) absl::StrAppend(&names, found.st_ctim.tv_sec, ".", found.st_ctim.tv_nsec, " ");
  }
  return names;
}

std::optional<std::string> HeadOf(const std::string& path) {
  std::ifstream head(path + kHeadSuffix);
  if (!head) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(head), {});
}

// Changes with everything that is written to the log.
std::string StateOf(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) found = {};
  return absl::StrCat(NamesOf(path), found.st_size, " ", HeadOf(path).value_or(""));
}

// The same text twice is none that was half written.
std::optional<std::string> WholeHead(const std::string& path) {
  std::optional<std::string> head = HeadOf(path);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    std::optional<std::string> again = HeadOf(path);
    if (again == head) break;
    head = std::move(again);
  }
  return head;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

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
  if (const auto sealed = Split(line)) {
    // The texts of events cannot contain these keys, because their quotation marks are escaped.
    line = sealed->covered.substr(0, sealed->covered.size() - kPreviousKey.size() - kTagDigits - 1);
  } else if (!absl::ConsumeSuffix(&line, "}")) {
    return std::nullopt;
  }
  if (!absl::ConsumePrefix(&line, "{\"number\":")) return std::nullopt;
  const size_t comma = line.find(',');
  if (comma == absl::string_view::npos || !absl::SimpleAtoi(line.substr(0, comma), &event.number))
    return std::nullopt;
  line.remove_prefix(comma);
  std::string time;
  if (!TakeString(&line, "time", &time) || !TakeString(&line, "user", &event.user) ||
      !TakeString(&line, "action", &event.action) ||
      !TakeString(&line, "subject", &event.subject) ||
      !TakeString(&line, "outcome", &event.outcome) || !line.empty() ||
      !absl::ParseTime(kTimeFormat, time, absl::UTCTimeZone(), &event.time, nullptr))
    return std::nullopt;
  return event;
}

std::string AuditChain::TagOf(absl::string_view sealed, bool begins_file) const {
  const auto tag = key_.Authenticate();
  tag->Update(begins_file ? kFirstOfFile : kNextLine);
  tag->Update(sealed);
  return absl::BytesToHexString(tag->Finish());
}

std::string AuditChain::Seal(const AuditEvent& event, absl::string_view previous,
                             bool begins_file) const {
  std::string line = ToJson(event);
  line.pop_back();  // the brace
  absl::StrAppend(&line, kPreviousKey, previous, "\"");
  const std::string tag = TagOf(line, begins_file);
  absl::StrAppend(&line, kTagKey, tag, "\"}");
  return line;
}

std::string AuditChain::SealOf(absl::string_view lines) {
  return Sha256Hex({lines.data(), lines.size()});
}

std::optional<std::string> AuditChain::TagIn(absl::string_view line) {
  const auto sealed = Split(line);
  return sealed ? std::optional(std::string(sealed->tag)) : std::nullopt;
}

std::string AuditChain::HeadText(const AuditEnd& end) const {
  const std::string covered =
      absl::StrFormat("%020d %s", end.number, end.tag.empty() ? kNothing : end.tag);
  const auto tag = key_.Authenticate();
  tag->Update(kHead);
  tag->Update(covered);
  return absl::StrCat(covered, " ", absl::BytesToHexString(tag->Finish()), "\n");
}

std::optional<AuditEnd> AuditChain::ParseHead(absl::string_view text) const {
  AuditEnd end;
  const size_t blank = text.find(' ');
  if (blank == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, blank), &end.number) ||
      end.number < 0)
    return std::nullopt;
  end.tag = std::string(text.substr(blank + 1, kTagDigits));
  // Whatever the text has in other places, or more of, is not in this one.
  if (!IsTag(end.tag) || !cache::SameTag(text, HeadText(end))) return std::nullopt;
  if (end.tag == kNothing) end.tag.clear();
  return end;
}

// Goes through the lines of a log.
class AuditChain::Walk {
 public:
  Walk(const AuditChain& chain, const Files& files) : chain_(chain), files_(files) {}

  AuditReport Run() {
    if (files_.earlier != nullptr) {
      is_earlier_ = true;
      ReadFile(*files_.earlier, absl::StrCat(files_.name, kEarlierSuffix),
               std::numeric_limits<int64_t>::max());
      is_earlier_ = false;
    }
    if (!report_.problem && files_.current != nullptr)
      ReadFile(*files_.current, files_.name,
               files_.bytes < 0 ? std::numeric_limits<int64_t>::max() : files_.bytes);
    if (!report_.problem) CheckEnd();
    return report_;
  }

 private:
  void ReadFile(std::istream& file, const std::string& name, int64_t bytes) {
    file_ = name;
    line_ = 0;
    unsealed_.clear();
    std::string line;
    while (!report_.problem && bytes > 0 && std::getline(file, line)) {
      ++line_;
      bytes -= static_cast<int64_t>(line.size()) + 1;
      // The last line of a file has a newline, too.
      if (file.eof()) {
        Found("is not complete: kilnd was killed while it wrote it, or the file was cut");
      } else {
        Look(line);
      }
    }
  }

  void Look(const std::string& line) {
    const auto event = line.size() > kLineBytesMax ? std::nullopt : FromJson(line);
    const auto sealed = Split(line);
    if (!event) {
      Found("is not an event: it was changed or inserted");
    } else if (sealed) {
      LookAtSealed(*event, *sealed);
    } else if (began_) {
      Found("has no seal: it was changed or inserted");
    } else {
      ++report_.unprotected;
      absl::StrAppend(&unsealed_, line, "\n");
      report_.end.number = event->number;
    }
  }

  void LookAtSealed(const AuditEvent& event, const SealedLine& sealed) {
    const bool begins_file = line_ == 1;
    if (!cache::SameTag(sealed.tag, chain_.TagOf(sealed.covered, begins_file))) {
      const bool moved = cache::SameTag(sealed.tag, chain_.TagOf(sealed.covered, !begins_file));
      if (moved && begins_file)
        return Found("does not begin its file: lines before it were deleted");
      if (moved)
        return Found("begins another file: lines were inserted before it, or it was moved");
      return Found("does not match its seal: it was changed, or written with another key");
    }
    if (began_ && event.number > report_.end.number + 1)
      return Found(absl::StrCat("is event ", event.number, ", but event ", report_.end.number + 1,
                                " comes first: lines before it were deleted"));
    const std::string expected = Expected();
    // The earlier file continues one that was dropped.
    const bool continues = begins_file && is_earlier_;
    if (!expected.empty() && sealed.previous != expected) {
      return Found(
          unsealed_.empty()
              ? "does not follow the line before it: a line was repeated or moved"
              : "does not match the lines before it, which have no seals: one was changed");
    }
    if (expected.empty() && !continues && sealed.previous != kNothing)
      return Found(absl::StrCat("continues ", files_.name, kEarlierSuffix, ", which was deleted"));
    began_ = true;
    ++report_.events;
    report_.end = {event.number, std::string(sealed.tag)};
  }

  // Returns what the next line must have as `previous`; empty: not known.
  std::string Expected() const {
    if (began_) return report_.end.tag;
    return unsealed_.empty() ? "" : SealOf(unsealed_);
  }

  void CheckEnd() {
    AuditEnd written = files_.known;
    if (files_.head) {
      const auto head = chain_.ParseHead(*files_.head);
      if (!head) {
        ++line_;
        return Found(absl::StrCat("cannot be checked: ", files_.name, kHeadSuffix,
                                  ", which has the number of the last event, was changed"));
      }
      if (head->number > written.number) written = *head;
    } else if (began_) {
      ++line_;
      return Found(absl::StrCat("cannot be checked: ", files_.name, kHeadSuffix,
                                ", which has the number of the last event, is missing"));
    }
    if (written.number <= report_.end.number) return;
    ++line_;
    Found(absl::StrCat("is missing: the log ends with event ", report_.end.number, ", but event ",
                       written.number, " was written; the end was cut off"));
  }

  void Found(std::string what) { report_.problem = {file_, line_, std::move(what)}; }

  const AuditChain& chain_;
  const Files& files_;
  AuditReport report_;
  bool is_earlier_ = false;  // the file that is being read
  bool began_ = false;       // a line with a seal was read
  std::string unsealed_;     // the lines of this file before the first one with a seal
  std::string file_ = files_.name;
  int64_t line_ = 0;
};

AuditReport AuditChain::Verify(const Files& files) const { return Walk(*this, files).Run(); }

OpenAuditFiles OpenAudit(const std::string& path) {
  OpenAuditFiles files;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const std::string before = NamesOf(path);
    files = {};
    files.head = WholeHead(path);
    files.earlier.open(path + kEarlierSuffix);
    files.current.open(path);
    // A rotation gives both names to other files.
    if (NamesOf(path) == before) break;
  }
  return files;
}

absl::StatusOr<AuditReport> VerifyAuditFolder(const std::string& state_folder) {
  const std::string path = absl::StrCat(state_folder, "/", kAuditFile);
  if (const OpenAuditFiles files = OpenAudit(path); !files.current && !files.earlier && !files.head)
    return absl::NotFoundError(absl::StrCat("there is no audit log in ", state_folder));
  auto key = cache::Secret::OpenExisting(absl::StrCat(state_folder, "/", kAuditKeyFile));
  if (absl::IsNotFound(key.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no ", state_folder, "/", kAuditKeyFile,
                     ", the key of the audit log, so nothing can be verified; restore it from a "
                     "backup"));
  }
  if (!key.ok()) return key.status();
  const AuditChain chain(*std::move(key));
  AuditReport report;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const std::string before = StateOf(path);
    OpenAuditFiles files = OpenAudit(path);
    report = chain.Verify({.name = FileName(path),
                           .earlier = files.earlier ? &files.earlier : nullptr,
                           .current = files.current ? &files.current : nullptr,
                           .head = std::move(files.head)});
    // A daemon may have been writing the line, or the head, that was read.
    if (!report.problem || StateOf(path) == before) break;
  }
  return report;
}

}  // namespace kiln::auth
