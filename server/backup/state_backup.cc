#include "server/backup/state_backup.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/auth/audit_chain.h"
#include "server/auth/audit_log.h"
#include "server/auth/user_store.h"
#include "server/backup/database_copy.h"
#include "server/cache/secret.h"
#include "server/quota/limit_store.h"
#include "server/state/folder_lock.h"

namespace kiln::backup {
namespace {

namespace fs = std::filesystem;

// Files of the state folder, in the order in which they are read.
constexpr absl::string_view kStateFiles[] = {"token_key", "users", "quotas", "ended_sessions",
                                             auth::kAuditKeyFile};
// The head precedes the log: it must not name an event that the log in the archive lacks.
constexpr absl::string_view kAuditFiles[] = {"audit.jsonl.head", "audit.jsonl.1", "audit.jsonl"};
// A backup without these would not be one.
constexpr absl::string_view kNeededFiles[] = {"users"};
// Of the cache folder. A database comes with the key of its rows.
constexpr absl::string_view kDatabases[] = {"settings.sqlite", "tuning.sqlite"};
constexpr absl::string_view kDatabaseKeys[] = {"settings.key", "tuning.key"};
constexpr absl::string_view kCacheFolder = "cache/";
constexpr absl::string_view kSessionsFolder = "sessions/";
constexpr absl::string_view kSessionsKey = "sessions.key";

constexpr absl::string_view kStaging = "import";
constexpr absl::string_view kStagingSuffix = ".XXXXXX";

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

template <typename List>
bool Has(const List& list, absl::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsSessionFile(absl::string_view name) {
  return IsPlainName(name) && (name == kSessionsKey || absl::EndsWith(name, ".session") ||
                               absl::EndsWith(name, ".journal"));
}

// The names that an archive may have: none leads out of the folders.
bool IsKnownName(absl::string_view name) {
  if (absl::ConsumePrefix(&name, kCacheFolder))
    return Has(kDatabases, name) || Has(kDatabaseKeys, name);
  if (absl::ConsumePrefix(&name, kSessionsFolder)) return IsSessionFile(name);
  return Has(kStateFiles, name) || Has(kAuditFiles, name);
}

std::string In(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, "/", name);
}

absl::StatusOr<std::string> KeyFrom(const BackupOptions& options, bool may_make) {
  if (options.key_file.empty()) {
    return absl::FailedPreconditionError(
        "name the file of the archive's key with --state_key_file; --export_state makes it. Keep "
        "it, but not beside the archive");
  }
  auto secret = cache::Secret::OpenExisting(options.key_file);
  // Open would replace a file that is no key, such as one that was named by mistake.
  if (absl::IsNotFound(secret.status()) && may_make) secret = cache::Secret::Open(options.key_file);
  if (absl::IsNotFound(secret.status()))
    return absl::NotFoundError(absl::StrCat(
        "there is no ", options.key_file,
        "; name the file with the key that the archive was made with (--state_key_file)"));
  if (!secret.ok()) return secret.status();
  const auto key = secret->Authenticate();
  key->Update("key of a state archive");
  return key->Finish();
}

// A folder for files that are being copied, removed at the end.
class StagingFolder {
 public:
  static absl::StatusOr<std::unique_ptr<StagingFolder>> Make(const std::string& begin) {
    std::string path = absl::StrCat(begin, kStagingSuffix);
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot write in the folder of ", begin, ": ",
                                                 strerror(errno), "; name a file in another one"));
    }
    return std::unique_ptr<StagingFolder>(new StagingFolder(std::move(path)));
  }
  ~StagingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit StagingFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// A file to put into an archive. Open before any is read, so that a log that is rotated meanwhile
// is read whole.
struct Source {
  std::string name;
  std::unique_ptr<std::istream> file;
};

void AddSource(const std::string& path, std::string name, std::vector<Source>* sources) {
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (*file) sources->push_back({std::move(name), std::move(file)});
}

// The head is a text already: it must not name an event that comes after the files were rotated.
void AddAudit(const std::string& folder, std::vector<Source>* sources) {
  auth::OpenAuditFiles files = auth::OpenAudit(In(folder, auth::kAuditFile));
  const std::string name = auth::kAuditFile;
  if (files.head) {
    sources->push_back(
        {name + auth::kHeadSuffix, std::make_unique<std::istringstream>(*std::move(files.head))});
  }
  for (auto& [file, suffix] :
       {std::pair(&files.earlier, auth::kEarlierSuffix), std::pair(&files.current, "")}) {
    if (*file)
      sources->push_back({name + suffix, std::make_unique<std::ifstream>(std::move(*file))});
  }
}

// The size up to the last line's end: a daemon may be writing another.
int64_t WholeLines(std::istream& file, int64_t bytes) {
  for (int64_t end = bytes; end > 0; --end) {
    file.seekg(end - 1);
    if (file.get() == '\n') return end;
  }
  return 0;
}

absl::Status AddTo(ArchiveWriter& writer, Source& source) {
  std::istream& file = *source.file;
  file.seekg(0, std::ios::end);
  int64_t bytes = file.tellg();
  if (source.name == auth::kAuditFile) bytes = WholeLines(file, bytes);
  file.clear();
  file.seekg(0);
  return writer.Add(source.name, file, bytes);
}

void AddSessions(const std::string& folder, std::vector<Source>* sources) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (IsSessionFile(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    AddSource(In(folder, name), absl::StrCat(kSessionsFolder, name), sources);
}

absl::Status AddDatabases(const std::string& folder, const std::string& staging,
                          std::vector<Source>* sources) {
  for (const absl::string_view name : kDatabases) {
    const std::string from = In(folder, name), to = In(staging, name);
    if (!fs::exists(from)) continue;
    if (absl::Status status = CopyDatabase(from, to); !status.ok()) return status;
    AddSource(to, absl::StrCat(kCacheFolder, name), sources);
  }
  for (const absl::string_view name : kDatabaseKeys)
    AddSource(In(folder, name), absl::StrCat(kCacheFolder, name), sources);
  return absl::OkStatus();
}

bool IsStaging(absl::string_view name) {
  return absl::ConsumePrefix(&name, kStaging) && absl::ConsumePrefix(&name, ".") &&
         name.size() + 1 == kStagingSuffix.size() && IsPlainName(name);
}

// Renaming would replace a link or a device, such as /dev/full.
absl::Status CheckTarget(const BackupOptions& options) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(options.file, error);
  if (!fs::exists(found)) {
    if (fs::is_directory(fs::absolute(options.file).parent_path(), error)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", options.file,
                     ": its folder does not exist; make that folder, or name another file"));
  }
  if (!fs::is_regular_file(found)) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.file,
                     " is not a regular file, and a new file would replace it; name "
                     "a regular file, or one that does not exist"));
  }
  if (options.overwrite) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options.file, " exists; name another file, or --overwrite"));
}

// Opens the restored tables, as the daemon will.
absl::Status CheckTables(const std::string& staging) {
  for (const absl::string_view name : kNeededFiles) {
    if (!fs::exists(In(staging, name)))
      return absl::InvalidArgumentError(absl::StrCat("the archive has no file ", name));
  }
  if (const auto users = auth::UserStore::Open(In(staging, "users")); !users.ok())
    return users.status();
  const auto limits = quota::LimitStore::Open(In(staging, "quotas"), quota::Limits());
  return limits.status();
}

// Returns where a file of an archive belongs.
std::string PlaceOf(const BackupOptions& options, absl::string_view name) {
  if (absl::ConsumePrefix(&name, kCacheFolder)) return In(options.cache_folder, name);
  return In(options.state_folder, name);
}

absl::Status RequireNothingThere(const BackupOptions& options,
                                 const std::vector<ArchivedFile>& files) {
  if (options.overwrite) return absl::OkStatus();
  for (const ArchivedFile& file : files) {
    const std::string path = PlaceOf(options, file.name);
    if (fs::exists(path))
      return absl::FailedPreconditionError(
          absl::StrCat(path, " exists; --overwrite replaces the whole state by the archive's"));
  }
  return absl::OkStatus();
}

// Removes what would stay of the old state. Files that the archive has are replaced one by one: if
// there was a moment without users, a daemon that starts after a crash would let everybody in.
void RemoveOld(const BackupOptions& options, const std::vector<ArchivedFile>& files) {
  std::error_code ignored;
  const auto remove_unless_replaced = [&](absl::string_view name) {
    const bool is_replaced = std::any_of(files.begin(), files.end(),
                                         [&](const auto& file) { return file.name == name; });
    if (!is_replaced) fs::remove(In(options.state_folder, name), ignored);
  };
  absl::c_for_each(kStateFiles, remove_unless_replaced);
  absl::c_for_each(kAuditFiles, remove_unless_replaced);
  const auto has = [&](absl::string_view folder) {
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& file) { return absl::StartsWith(file.name, folder); });
  };
  if (has(kSessionsFolder)) fs::remove_all(In(options.state_folder, "sessions"), ignored);
  if (!has(kCacheFolder)) return;
  for (const absl::string_view name : kDatabases)
    for (const char* suffix : {"", "-wal", "-shm"})
      fs::remove(absl::StrCat(In(options.cache_folder, name), suffix), ignored);
  for (const absl::string_view name : kDatabaseKeys)
    fs::remove(In(options.cache_folder, name), ignored);
}

absl::Status MoveFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  // The cache may be on another disk.
  if (error == std::errc::cross_device_link) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (!error) fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", to, ": ", error.message()));
}

absl::Status AppendImport(const BackupOptions& options, const std::string& user, absl::Time now) {
  auto key = cache::Secret::Open(In(options.state_folder, auth::kAuditKeyFile));
  if (!key.ok()) return key.status();
  auto log = auth::AuditLog::Open(In(options.state_folder, auth::kAuditFile), *std::move(key));
  if (!log.ok()) return log.status();
  (*log)->Append({.time = now,
                  .user = user,
                  .action = "import_state",
                  .subject = options.file,
                  .outcome = "ok"});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ArchivedFile>> ExportState(const BackupOptions& options) {
  if (absl::Status status = CheckTarget(options); !status.ok()) return status;
  for (const absl::string_view name : kNeededFiles) {
    if (!fs::exists(In(options.state_folder, name)))
      return absl::FailedPreconditionError(
          absl::StrCat("there is no state of a daemon in ", options.state_folder,
                       "; name its folder with --state_dir or --config"));
  }
  const auto key = KeyFrom(options, /*may_make=*/true);
  if (!key.ok()) return key.status();
  std::unique_ptr<state::FolderLock> lock;
  if (options.with_sessions) {
    auto taken = state::FolderLock::Take(options.state_folder);
    if (!taken.ok()) return taken.status();
    lock = *std::move(taken);
  }
  auto staging = StagingFolder::Make(options.file);
  if (!staging.ok()) return staging.status();
  std::vector<Source> sources;
  for (const absl::string_view name : kStateFiles)
    AddSource(In(options.state_folder, name), std::string(name), &sources);
  AddAudit(options.state_folder, &sources);
  if (absl::Status status = AddDatabases(options.cache_folder, (*staging)->path(), &sources);
      !status.ok())
    return status;
  if (options.with_sessions) AddSessions(In(options.state_folder, "sessions"), &sources);
  auto writer = ArchiveWriter::Create(options.file, *key);
  if (!writer.ok()) return writer.status();
  for (Source& source : sources)
    if (absl::Status status = AddTo(**writer, source); !status.ok()) return status;
  if (absl::Status status = (*writer)->Finish(); !status.ok()) return status;
  return (*writer)->files();
}

int RemoveUnfinishedImports(const std::string& state_folder) {
  std::error_code error;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(state_folder, error))
    if (IsStaging(entry.path().filename().string())) left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove_all(path, error);
  return static_cast<int>(left.size());
}

absl::StatusOr<std::vector<ArchivedFile>> ImportState(const BackupOptions& options,
                                                      const std::string& user, absl::Time now) {
  const auto key = KeyFrom(options, /*may_make=*/false);
  if (!key.ok()) return key.status();
  for (const std::string& folder : {options.state_folder, options.cache_folder})
    if (absl::Status status = cache::OpenPrivateFolder(folder); !status.ok()) return status;
  const auto lock = state::FolderLock::Take(options.state_folder);
  if (!lock.ok()) return lock.status();
  RemoveUnfinishedImports(options.state_folder);
  auto staging = StagingFolder::Make(In(options.state_folder, kStaging));
  if (!staging.ok()) return staging.status();
  const std::string& from = (*staging)->path();
  auto files = Extract(options.file, *key, from, IsKnownName);
  if (!files.ok()) return files.status();
  if (absl::Status status = CheckTables(from); !status.ok()) return status;
  if (absl::Status status = RequireNothingThere(options, *files); !status.ok()) return status;
  RemoveOld(options, *files);
  for (const ArchivedFile& file : *files) {
    const std::string to = PlaceOf(options, file.name);
    if (absl::StartsWith(file.name, kSessionsFolder))
      if (absl::Status status = cache::OpenPrivateFolder(In(options.state_folder, "sessions"));
          !status.ok())
        return status;
    if (absl::Status status = MoveFile(In(from, file.name), to); !status.ok()) return status;
  }
  if (absl::Status status = AppendImport(options, user, now); !status.ok()) return status;
  return files;
}

}  // namespace kiln::backup
