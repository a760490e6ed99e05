#include "server/cache/sealed_table.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/cache/statement.h"
#include "server/log/log.h"

namespace kiln::cache {
namespace {

// How long a statement waits for another daemon that writes to the same file.
constexpr int kBusyMilliseconds = 2000;
// Eviction frees a little more than necessary, so that not every Put evicts.
constexpr double kKeepAfterEviction = 0.9;
// Updating `used` at every read would turn reads into writes; a minute is precise enough to find
// old rows.
constexpr int64_t kTouchSeconds = 60;

// Of values, in a page of ForEachInPages. The last one may exceed it.
constexpr size_t kReadBytes = size_t{256} << 10;

constexpr char kRemedy[] = "remove the file, or start kilnd with another --cache_dir";

// The write-ahead log beside the database may grow to this fraction of the limit, plus one value,
// before it is written back; afterwards it is truncated to that size. SQLite's default limit is
// 1,000 pages.
constexpr int64_t kLogShare = 8;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kLogPagesMin = 16;
constexpr int64_t kLogPagesMax = 1000;

std::string BoundLog(int64_t bytes_max) {
  const int64_t pages = std::clamp(bytes_max / kLogShare / kPageBytes, kLogPagesMin, kLogPagesMax);
  return absl::StrCat("PRAGMA wal_autocheckpoint=", pages,
                      ";PRAGMA journal_size_limit=", pages * kPageBytes, ";");
}

// In WAL mode, synchronous=NORMAL cannot corrupt the file. A power failure at worst loses the last
// commits.
std::string SchemaOf(const std::string& table) {
  return absl::StrCat(
      "PRAGMA journal_mode=WAL;"
      "PRAGMA synchronous=NORMAL;"
      "CREATE TABLE IF NOT EXISTS ",
      table,
      "(key BLOB PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL,"
      "  value BLOB NOT NULL);"
      // Contains everything that sizes and eviction need, so that neither reads the values.
      "CREATE INDEX IF NOT EXISTS ",
      table, "_used ON ", table, "(used, bytes, key);");
}

constexpr size_t kDigestBytes = 32;

// Binary, since rows are many and small.
std::string DigestOf(const std::string& key) {
  Sha256 digest;
  digest.Update(key);
  std::string bytes = digest.Finish();
  // Secret::Seal relies on it.
  KILN_CHECK_EQ(bytes.size(), kDigestBytes);
  return bytes;
}

// Escapes a path for SQLite's URIs (sqlite.org/uri.html).
std::string Escaped(const std::string& path) {
  return absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}});
}

// Whether the folder cannot be written to: a folder of an image, or on a read-only mount.
bool IsReadOnly(const std::string& folder) {
  return access(folder.c_str(), W_OK) != 0 && (errno == EROFS || errno == EACCES);
}

int64_t FormatOf(sqlite3* handle) {
  Statement statement(handle, "PRAGMA user_version");
  return statement.Step() == SQLITE_ROW ? statement.ColumnInt(0) : 0;
}

}  // namespace

struct SealedTable::Database {
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static FileId IdOf(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return {};
    return {status.st_dev, status.st_ino};
  }
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };

  Database(sqlite3* handle, const std::string& path, const std::string& table)
      : file(IdOf(path)),
        handle(handle),
        get(handle, Sql("SELECT value, used FROM $ WHERE key=?1", table)),
        put(handle,
            Sql("INSERT OR REPLACE INTO $(key,value,bytes,used) VALUES(?1,?2,?3,?4)", table)),
        drop(handle, Sql("DELETE FROM $ WHERE key=?1", table)),
        touch(handle, Sql("UPDATE $ SET used=?2 WHERE key=?1", table)),
        all(handle, Sql("SELECT key, value FROM $ ORDER BY used DESC, key", table)),
        page(handle, Sql("SELECT key, value FROM $ WHERE key > ?1 ORDER BY key", table)),
        total(handle, Sql("SELECT COUNT(*), COALESCE(SUM(bytes),0) FROM $", table)),
        clear(handle, Sql("DELETE FROM $", table)),
        evict(handle,
              // Keeps the most recently used rows that together fit ?1 bytes, and at most ?2.
              Sql("DELETE FROM $ WHERE key IN (SELECT key FROM (SELECT key, SUM(bytes) OVER used "
                  "AS newer, ROW_NUMBER() OVER used AS number FROM $ "
                  "WINDOW used AS (ORDER BY used DESC, key)) WHERE newer > ?1 OR number > ?2)",
                  table)) {
    CountAll();
  }

  static std::string Sql(const char* text, const std::string& table) {
    return absl::StrReplaceAll(text, {{"$", table}});
  }
  void CountAll() {
    if (total.Step() == SQLITE_ROW) {
      rows = total.ColumnInt(0);
      bytes = total.ColumnInt(1);
    }
    total.Reset();
  }

  FileId file;
  std::unique_ptr<sqlite3, Closer> handle;  // destroyed after the statements
  Statement get, put, drop, touch, all, page, total, clear, evict;
  // Approximate: other daemons may share the file, and a replaced row counts twice.
  int64_t rows = 0;
  int64_t bytes = 0;
  bool is_read_only = false;
};

SealedTable::SealedTable(Options options)
    : options_(std::move(options)),
      path_(absl::StrCat(options_.folder, "/", options_.name, ".sqlite")) {
  absl::MutexLock lock(&mutex_);
  Ready();
}

SealedTable::~SealedTable() = default;

absl::Status SealedTable::Open() {
  if (absl::Status status = OpenPrivateFolder(options_.folder); !status.ok()) return status;
  auto secret = Secret::Open(absl::StrCat(options_.folder, "/", options_.name, ".key"));
  if (!secret.ok()) return secret.status();
  secret_ = *std::move(secret);
  if (IsReadOnly(options_.folder)) return OpenReadOnly();
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(path_.c_str(), &raw,
                      // mutex_ guards every use of the connection, so SQLite needs no lock.
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<sqlite3, Database::Closer> handle(raw);
  if (opened != SQLITE_OK)
    return absl::UnavailableError(
        absl::StrCat("cannot open ", path_, ": ", sqlite3_errmsg(raw), "; ", kRemedy));
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  // A file that is not a database has format 0. Errors here reappear in the next statement, which
  // is checked.
  if (FormatOf(raw) < options_.version) {
    const std::string renew = absl::StrCat("DROP TABLE IF EXISTS ", options_.name,
                                           "; PRAGMA user_version=", options_.version);
    sqlite3_exec(raw, renew.c_str(), nullptr, nullptr, nullptr);
  }
  const std::string schema = absl::StrCat(SchemaOf(options_.name), BoundLog(options_.bytes_max));
  const int made = sqlite3_exec(raw, schema.c_str(), nullptr, nullptr, nullptr);
  const std::string why = sqlite3_errmsg(raw);
  // A table of this version with other columns is another program's.
  const bool is_foreign = made == SQLITE_ERROR && FormatOf(raw) <= options_.version;
  if (made == SQLITE_CORRUPT || made == SQLITE_NOTADB || is_foreign)
    return absl::DataLossError(why);
  if (made != SQLITE_OK)
    return absl::UnavailableError(absl::StrCat("cannot use ", path_, ": ", why, "; ", kRemedy));
  database_ = std::make_unique<Database>(handle.release(), path_, options_.name);
  return absl::OkStatus();
}

absl::Status SealedTable::OpenReadOnly() {
  sqlite3* raw = nullptr;
  // The file does not change, so SQLite needs neither locks nor files beside it.
  const std::string uri = absl::StrCat("file:", Escaped(path_), "?immutable=1");
  const int opened = sqlite3_open_v2(
      uri.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<sqlite3, Database::Closer> handle(raw);
  if (opened != SQLITE_OK || FormatOf(raw) != options_.version) {
    return absl::UnavailableError(
        absl::StrCat("the folder is read-only, and ", path_, " is not a ", options_.title,
                     " that can be read; start kilnd with another --cache_dir"));
  }
  database_ = std::make_unique<Database>(handle.release(), path_, options_.name);
  database_->is_read_only = true;
  if (!std::exchange(complained_, true)) {
    log::Info(
        Event("read_only"),
        {{"path", path_},
         {"so", absl::StrCat("its ", options_.noun, "s are used, and new ones are not stored")}});
  }
  return absl::OkStatus();
}

void SealedTable::MoveAside(const std::string& why) {
  if (database_ && database_->is_read_only) return;
  database_.reset();
  const std::string aside = absl::StrCat(path_, ".damaged");
  log::Warning(Event("damaged"), {{"path", path_}, {"moved_to", aside}, {"why", why}});
  std::rename(path_.c_str(), aside.c_str());
  // The log of the damaged database must not be applied to the new one.
  for (const char* suffix : {"-wal", "-shm"}) std::remove(absl::StrCat(path_, suffix).c_str());
}

bool SealedTable::Ready() {
  if (database_ && database_->file == Database::IdOf(path_)) return true;
  if (database_) {
    database_.reset();
    // The deleted file's log would be applied to the new one.
    if (Database::IdOf(path_) == Database::FileId{}) {
      for (const char* suffix : {"-wal", "-shm"}) std::remove(absl::StrCat(path_, suffix).c_str());
    }
  }
  absl::Status status = Open();
  if (absl::IsDataLoss(status)) {
    MoveAside(std::string(status.message()));
    status = Open();
  }
  if (!status.ok() && !complained_) {
    complained_ = true;
    log::Warning(Event("off"), {{"why", std::string(status.message())}});
  }
  KILN_CHECK_EQ(status.ok(), database_ != nullptr);
  KILN_CHECK(database_ == nullptr || secret_.has_value());
  return status.ok();
}

SealedTable::Lookup SealedTable::Get(const std::string& key, std::optional<std::string>* value) {
  value->reset();
  absl::MutexLock lock(&mutex_);
  return Ready() ? Find(DigestOf(key), value) : Lookup::kMiss;
}

SealedTable::Lookup SealedTable::Find(const std::string& digest,
                                      std::optional<std::string>* value) {
  KILN_CHECK_NE(database_, nullptr);
  const int64_t now = absl::ToUnixSeconds(options_.now());
  const int found = database_->get.Blob(1, digest).Step();
  std::string sealed;
  int64_t used = now;
  if (found == SQLITE_ROW) {
    sealed = database_->get.ColumnBlob(0);
    used = database_->get.ColumnInt(1);
  }
  // Before MoveAside, which destroys the statements.
  database_->get.Reset();
  if (found == SQLITE_CORRUPT || found == SQLITE_NOTADB) MoveAside(sqlite3_errstr(found));
  if (found != SQLITE_ROW) return Lookup::kMiss;
  *value = secret_->Unseal(digest, sealed);
  if (!value->has_value()) {
    Drop(digest);
    return Lookup::kRejected;
  }
  // The clock may have been set back since.
  const bool is_old = now - used >= kTouchSeconds || now < used;
  if (is_old && !database_->is_read_only) {
    database_->touch.Blob(1, digest).Int(2, now).Step();
    database_->touch.Reset();
  }
  return Lookup::kHit;
}

void SealedTable::Drop(const std::string& digest) {
  KILN_CHECK_NE(database_, nullptr);
  KILN_CHECK_EQ(digest.size(), kDigestBytes);
  log::Warning(Event("rejected"), {{"path", path_},
                                   {"row", absl::BytesToHexString(digest).substr(0, 12)},
                                   {"why", absl::StrCat("it was not written with the key of this ",
                                                        options_.title, "; ", options_.loss)}});
  if (database_->is_read_only) return;
  database_->drop.Blob(1, digest).Step();
  database_->drop.Reset();
}

absl::Status SealedTable::Put(const std::string& key, const std::string& value) {
  const std::string digest = DigestOf(key);
  absl::MutexLock lock(&mutex_);
  // A value above the limit would evict all others and then itself.
  if (static_cast<int64_t>(value.size()) > options_.bytes_max)
    return absl::ResourceExhaustedError(absl::StrCat("a ", options_.noun, " of ", value.size(),
                                                     " bytes is larger than the ", options_.title));
  if (!Ready()) return CannotOpen();
  if (database_->is_read_only) return IsReadOnlyError();
  const std::string sealed = secret_->Seal(digest, value);
  const int64_t size = static_cast<int64_t>(sealed.size() + digest.size());
  KILN_CHECK_GT(size, value.size());
  const int64_t now = absl::ToUnixSeconds(options_.now());
  const int done = database_->put.Blob(1, digest).Blob(2, sealed).Int(3, size).Int(4, now).Step();
  database_->put.Reset();
  if (done == SQLITE_CORRUPT || done == SQLITE_NOTADB) {
    MoveAside(sqlite3_errstr(done));
    return absl::UnavailableError(absl::StrCat(path_, " is damaged"));
  }
  if (done != SQLITE_DONE) {
    log::Warning(Event("write_failed"), {{"why", sqlite3_errstr(done)}});
    return absl::UnavailableError(
        absl::StrCat("cannot write to ", path_, ": ", sqlite3_errstr(done)));
  }
  ++database_->rows;
  database_->bytes += size;
  if (database_->bytes > options_.bytes_max || database_->rows > options_.rows_max) Evict();
  return absl::OkStatus();
}

absl::Status SealedTable::ForEach(const std::function<void(std::string_view value)>& use) {
  absl::MutexLock lock(&mutex_);
  if (!Ready()) return CannotOpen();
  int step;
  while ((step = database_->all.Step()) == SQLITE_ROW) {
    const std::optional<std::string> value =
        secret_->Unseal(database_->all.ColumnBlob(0), database_->all.ColumnBlob(1));
    // Rows with a wrong seal are dropped when their key is next asked for.
    if (value) use(*value);
  }
  database_->all.Reset();
  return AfterReading(step);
}

absl::Status SealedTable::ForEachInPages(const std::function<void(std::string_view value)>& use) {
  std::string after;
  absl::StatusOr<bool> has_more = true;
  while (has_more.ok() && *has_more) {
    std::vector<std::string> values;
    has_more = ReadPage(&after, &values);
    for (const std::string& value : values) use(value);
  }
  return has_more.status();
}

absl::StatusOr<bool> SealedTable::ReadPage(std::string* after, std::vector<std::string>* values) {
  absl::MutexLock lock(&mutex_);
  if (!Ready()) return CannotOpen();
  const std::string first = *after;
  database_->page.Blob(1, first);
  size_t bytes = 0;
  int step = SQLITE_DONE;
  while (bytes < kReadBytes && (step = database_->page.Step()) == SQLITE_ROW) {
    *after = database_->page.ColumnBlob(0);
    const std::string sealed = database_->page.ColumnBlob(1);
    bytes += sealed.size();
    if (std::optional<std::string> value = secret_->Unseal(*after, sealed))
      values->push_back(*std::move(value));
  }
  database_->page.Reset();
  if (step == SQLITE_ROW) return true;
  if (absl::Status status = AfterReading(step); !status.ok()) return status;
  return false;
}

absl::Status SealedTable::AfterReading(int step) {
  if (step == SQLITE_CORRUPT || step == SQLITE_NOTADB) MoveAside(sqlite3_errstr(step));
  if (step == SQLITE_DONE) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot read ", path_, ": ", sqlite3_errstr(step)));
}

void SealedTable::Evict() {
  // Counted again, since other daemons may have added and evicted rows, too.
  database_->CountAll();
  if (database_->bytes <= options_.bytes_max && database_->rows <= options_.rows_max) return;
  const auto keep = [](int64_t limit) {
    return static_cast<int64_t>(static_cast<double>(limit) * kKeepAfterEviction);
  };
  database_->evict.Int(1, keep(options_.bytes_max)).Int(2, keep(options_.rows_max)).Step();
  database_->evict.Reset();
  database_->CountAll();
}

absl::Status SealedTable::CannotOpen() const {
  return absl::UnavailableError(
      absl::StrCat("the ", options_.title, " ", path_, " cannot be opened"));
}

absl::Status SealedTable::IsReadOnlyError() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the ", options_.title, " ", path_, " is in a read-only folder"));
}

std::string SealedTable::Event(const char* what) const {
  return absl::StrCat(absl::StrReplaceAll(options_.title, {{" ", "_"}}), "_", what);
}

absl::StatusOr<int64_t> SealedTable::Clear() {
  absl::MutexLock lock(&mutex_);
  if (!Ready()) return CannotOpen();
  if (database_->is_read_only) return IsReadOnlyError();
  const int done = database_->clear.Step();
  const int64_t deleted = sqlite3_changes(database_->handle.get());
  database_->clear.Reset();
  if (done != SQLITE_DONE)
    return absl::UnavailableError(absl::StrCat("cannot clear ", path_, ": ", sqlite3_errstr(done)));
  database_->rows = database_->bytes = 0;
  return deleted;
}

SealedTable::Statistics SealedTable::GetStatistics() {
  absl::MutexLock lock(&mutex_);
  if (!Ready()) return {};
  database_->CountAll();
  return {.rows = database_->rows, .bytes = database_->bytes};
}

}  // namespace kiln::cache
