#include "server/backup/database_copy.h"

#include <sqlite3.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace kiln::backup {
namespace {

// How long a step waits for a writer.
constexpr int kBusyMilliseconds = 10'000;

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

absl::StatusOr<Database> OpenDatabase(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database(raw, &sqlite3_close);
  if (opened != SQLITE_OK)
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", sqlite3_errstr(opened)));
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  return database;
}

}  // namespace

absl::Status CopyDatabase(const std::string& from, const std::string& to) {
  const auto source = OpenDatabase(from, SQLITE_OPEN_READONLY);
  if (!source.ok()) return source.status();
  const auto copy = OpenDatabase(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!copy.ok()) return copy.status();
  sqlite3_backup* const backup = sqlite3_backup_init(copy->get(), "main", source->get(), "main");
  // All pages in one step: otherwise it begins anew with each change by a writer.
  const int stepped = backup == nullptr ? SQLITE_ERROR : sqlite3_backup_step(backup, -1);
  const int finished = backup == nullptr ? SQLITE_ERROR : sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE || finished != SQLITE_OK) {
    return absl::UnavailableError(absl::StrCat(
        "cannot copy ", from, ": ", sqlite3_errstr(stepped == SQLITE_DONE ? finished : stepped)));
  }
  // One file, without a log beside it.
  if (sqlite3_exec(copy->get(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return absl::UnavailableError(absl::StrCat("cannot write ", to));
  return absl::OkStatus();
}

}  // namespace kiln::backup
