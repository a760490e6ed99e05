#include "server/state/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/state/small_file.h"
#include "server/state/sync_folder.h"

namespace kiln::state {
namespace {

// Far more than the largest table has.
constexpr int64_t kTableBytesMax = int64_t{64} << 20;

absl::Status Failed(const std::string& what, const std::string& path) {
  return errors::WithReason(
      absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno))),
      "STATE_FOLDER");
}

std::string LastLine(size_t lines) { return absl::StrCat("end of ", lines); }

}  // namespace

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(absl::StrCat(
      path, " is damaged; restore it from a backup, or remove it and enter its content again"));
}

namespace {

// Returns the number at the end of a header; 0: there is none.
int VersionIn(const std::string& header) {
  int version = 0;
  const size_t blank = header.rfind(' ');
  return blank != std::string::npos && absl::SimpleAtoi(header.substr(blank + 1), &version)
             ? version
             : 0;
}

// DATA_LOSS. The first line is not the header.
absl::Status AnotherHeader(const std::string& path, const std::string& line,
                           const std::string& header) {
  const std::string table = header.substr(0, header.rfind(' ') + 1);
  const bool is_newer =
      line.size() < 80 && line.rfind(table, 0) == 0 && VersionIn(line) > VersionIn(header);
  if (!is_newer) return Damaged(path);
  return absl::DataLossError(
      absl::StrCat(path, " was written by a newer version of Kiln: it is \"", line,
                   "\", and this version reads \"", header,
                   "\". Start the newer version, or restore a backup that this one has written"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path,
                                                   const std::string& header) {
  std::vector<std::string> lines;
  const auto text = ReadSmallFile(path, "the table", kTableBytesMax);
  if (absl::IsNotFound(text.status())) return lines;
  if (!text.ok()) {
    return errors::WithReason(absl::UnavailableError(text.status().message()), "STATE_FOLDER");
  }
  std::istringstream stream(*text);
  std::string line;
  if (!std::getline(stream, line)) return Damaged(path);
  if (line != header) return AnotherHeader(path, line, header);
  while (std::getline(stream, line)) lines.push_back(line);
  // A truncated file, even if cut between two lines, lacks the last line or has the wrong number.
  if (lines.empty() || lines.back() != LastLine(lines.size() - 1)) return Damaged(path);
  lines.pop_back();
  return lines;
}

// Also syncs the folder's entry; otherwise a crash could restore the old file.
absl::Status WriteLines(const std::string& path, const std::string& header,
                        const std::vector<std::string>& lines) {
  std::string text = absl::StrCat(header, "\n");
  for (const std::string& line : lines) {
    KILN_CHECK(line.find('\n') == std::string::npos) << path;
    absl::StrAppend(&text, line, "\n");
  }
  absl::StrAppend(&text, LastLine(lines.size()), "\n");
  const std::string draft = absl::StrCat(path, ".new");
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return Failed("make", draft);
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file) == 0;
  const absl::Status failed = written ? absl::OkStatus() : Failed("write", draft);
  close(file);
  if (!failed.ok()) return failed;
  if (rename(draft.c_str(), path.c_str()) != 0) return Failed("replace", path);
  const absl::Status synced = SyncFolderOf(path);
  return synced.ok() ? synced : errors::WithReason(synced, "STATE_FOLDER");
}

}  // namespace kiln::state
