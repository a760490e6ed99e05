#include "server/backup/state_backup.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/audit_log.h"
#include "server/auth/user_store.h"
#include "server/cache/secret.h"
#include "server/quota/limit_store.h"
#include "server/state/folder_lock.h"
#include "server/tuner/setting_store.h"

namespace kiln::backup {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A daemon's folders with something in them, which stay in use; and a second daemon's.
class StateBackupTest : public ::testing::Test {
 protected:
  StateBackupTest() {
    for (const std::string& from : {from_.state_folder, from_.cache_folder})
      EXPECT_TRUE(cache::OpenPrivateFolder(from).ok());
    users_ = *auth::UserStore::Open(from_.state_folder + "/users");
    EXPECT_TRUE(users_->Add({.name = "ann", .role = auth::Role::kAdmin}).ok());
    key_print_ = cache::Secret::Open(from_.state_folder + "/token_key")->Fingerprint();
    limits_ = *quota::LimitStore::Open(from_.state_folder + "/quotas", quota::Limits());
    EXPECT_TRUE(limits_->Set("ann", {{quota::Resource::kSessions, 7}}).ok());
    audit_ = *auth::AuditLog::Open(from_.state_folder + "/audit.jsonl",
                                   *cache::Secret::Open(from_.state_folder + "/audit_key"));
    audit_->Append({.time = absl::UnixEpoch(),
                    .user = "root",
                    .action = "add_user",
                    .subject = "ann",
                    .outcome = "ok"});
    settings_ = std::make_unique<tuner::SettingStore>(
        tuner::SettingStore::Options{.folder = from_.cache_folder, .now = absl::Now});
    EXPECT_TRUE(settings_->PutRates("some hardware", tuner::DeviceRates{}).ok());
    fs::create_directory(from_.state_folder + "/sessions");
    std::ofstream(from_.state_folder + "/sessions/abc.session") << "a checkpoint";
    std::ofstream(from_.state_folder + "/sessions/sessions.key") << std::string(32, 's');
    std::ofstream(from_.state_folder + "/unknown") << "not a file of the state";
  }
  ~StateBackupTest() override { fs::remove_all(folder_); }

  BackupOptions Folders(const std::string& name) const {
    return {.file = folder_ + "/archive",
            .key_file = folder_ + "/archive.key",
            .state_folder = absl::StrCat(folder_, "/", name, "/state"),
            .cache_folder = absl::StrCat(folder_, "/", name, "/cache")};
  }
  void ExpectRestored(const BackupOptions& to) const {
    auto users = auth::UserStore::Open(to.state_folder + "/users");
    ASSERT_TRUE(users.ok()) << users.status();
    EXPECT_EQ((*users)->Find("ann")->role, auth::Role::kAdmin);
    EXPECT_EQ(cache::Secret::OpenExisting(to.state_folder + "/token_key")->Fingerprint(),
              key_print_);
    auto limits = quota::LimitStore::Open(to.state_folder + "/quotas", quota::Limits());
    ASSERT_TRUE(limits.ok()) << limits.status();
    EXPECT_EQ((*limits)->LimitsOf("ann")[quota::Resource::kSessions], 7);
    const auto audit = auth::VerifyAuditFolder(to.state_folder);
    ASSERT_TRUE(audit.ok()) << audit.status();
    EXPECT_FALSE(audit->problem) << audit->problem->what;
    tuner::SettingStore settings({.folder = to.cache_folder, .now = absl::Now});
    EXPECT_TRUE(settings.FindRates("some hardware"));
  }

  const std::string folder_ = MakeFolder();
  std::string key_print_;
  const BackupOptions from_ = Folders("from");
  std::unique_ptr<auth::UserStore> users_;
  std::unique_ptr<quota::LimitStore> limits_;
  std::unique_ptr<auth::AuditLog> audit_;
  std::unique_ptr<tuner::SettingStore> settings_;

 private:
  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "kiln_backup_XXXXXX";
    return mkdtemp(pattern.data());
  }
};

TEST_F(StateBackupTest, AnotherMachineHasTheSameState) {
  const auto exported = ExportState(from_);
  ASSERT_TRUE(exported.ok()) << exported.status();
  const BackupOptions to = Folders("to");
  const auto imported = ImportState(to, "root", absl::UnixEpoch());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->size(), exported->size());
  ExpectRestored(to);
  // The import is an event, after the restored ones.
  EXPECT_EQ(auth::VerifyAuditFolder(to.state_folder)->events, 2);
  EXPECT_FALSE(fs::exists(to.state_folder + "/sessions"));
  EXPECT_FALSE(fs::exists(to.state_folder + "/unknown"));
  for (const auto& entry : fs::directory_iterator(to.state_folder))
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("import")));
}

TEST_F(StateBackupTest, SessionsMoveOnlyWhileNoDaemonRuns) {
  BackupOptions from = from_;
  from.with_sessions = true;
  auto lock = state::FolderLock::Take(from.state_folder);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(ExportState(from).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(ExportState(from_).ok());
  lock->reset();
  EXPECT_EQ(ExportState(from).status().code(), absl::StatusCode::kFailedPrecondition);
  from.overwrite = true;
  ASSERT_TRUE(ExportState(from).ok());
  const BackupOptions to = Folders("to");
  ASSERT_TRUE(ImportState(to, "root", absl::UnixEpoch()).ok());
  EXPECT_TRUE(fs::exists(to.state_folder + "/sessions/abc.session"));
  EXPECT_EQ(fs::file_size(to.state_folder + "/sessions/sessions.key"), 32);
}

TEST_F(StateBackupTest, AStateIsReplacedOnlyOnRequest) {
  ASSERT_TRUE(ExportState(from_).ok());
  BackupOptions to = Folders("to");
  ASSERT_TRUE(cache::OpenPrivateFolder(to.state_folder).ok());
  {
    auto other = *auth::UserStore::Open(to.state_folder + "/users");
    ASSERT_TRUE(other->Add({.name = "bob"}).ok());
  }
  std::ofstream(to.state_folder + "/audit.jsonl.1") << "an older log\n";
  const auto refused = ImportState(to, "root", absl::UnixEpoch());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--overwrite"));
  EXPECT_TRUE((*auth::UserStore::Open(to.state_folder + "/users"))->Find("bob"));
  to.overwrite = true;
  ASSERT_TRUE(ImportState(to, "root", absl::UnixEpoch()).ok());
  ExpectRestored(to);
  EXPECT_FALSE((*auth::UserStore::Open(to.state_folder + "/users"))->Find("bob"));
  auto lock = *state::FolderLock::Take(to.state_folder);
  EXPECT_EQ(ImportState(to, "root", absl::UnixEpoch()).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StateBackupTest, ADamagedArchiveOrAnotherKeyChangesNothing) {
  ASSERT_TRUE(ExportState(from_).ok());
  BackupOptions to = Folders("to");
  to.key_file = folder_ + "/another.key";
  EXPECT_EQ(ImportState(to, "root", absl::UnixEpoch()).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(cache::Secret::Open(to.key_file).ok());
  EXPECT_THAT(std::string(ImportState(to, "root", absl::UnixEpoch()).status().message()),
              HasSubstr("another key"));
  to.key_file = from_.key_file;
  fs::resize_file(to.file, fs::file_size(to.file) - 1);
  EXPECT_THAT(std::string(ImportState(to, "root", absl::UnixEpoch()).status().message()),
              HasSubstr("was cut"));
  EXPECT_FALSE(fs::exists(to.state_folder + "/users"));
}

TEST_F(StateBackupTest, WithoutStateOrKeyNothingIsWritten) {
  EXPECT_THAT(std::string(ExportState(Folders("nowhere")).status().message()),
              HasSubstr("there is no state of a daemon"));
  BackupOptions from = from_;
  from.key_file = "";
  EXPECT_THAT(std::string(ExportState(from).status().message()), HasSubstr("--state_key_file"));
  EXPECT_FALSE(fs::exists(from.file));
}

TEST_F(StateBackupTest, AFileThatIsNoKeyIsNotReplaced) {
  BackupOptions from = from_;
  from.key_file = folder_ + "/letter";
  const std::string text = "a private file that is named by mistake";
  std::ofstream(from.key_file) << text;
  fs::permissions(from.key_file, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(ExportState(from).status().code(), absl::StatusCode::kDataLoss);
  std::string now;
  std::getline(std::ifstream(from.key_file), now);
  EXPECT_EQ(now, text);
  EXPECT_FALSE(fs::exists(from.file));
}

TEST_F(StateBackupTest, OnlyARegularFileIsReplaced) {
  BackupOptions from = from_;
  from.overwrite = true;
  const std::string fifo = folder_ + "/fifo", target = folder_ + "/target";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(target) << "something else";
  fs::create_symlink(target, folder_ + "/link");
  for (const std::string& file : {fifo, folder_ + "/link", std::string("/dev/full")}) {
    from.file = file;
    const absl::Status status = ExportState(from).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file + " is not a regular file"));
    EXPECT_FALSE(fs::is_regular_file(fs::symlink_status(file)));
  }
  EXPECT_EQ(fs::file_size(target), 14u);
  EXPECT_FALSE(fs::exists(from.key_file)) << "it was made for no archive";
}

TEST_F(StateBackupTest, AnArchiveIsARegularFileAndItsFirstLineIsBounded) {
  ASSERT_TRUE(cache::Secret::Open(from_.key_file).ok());
  BackupOptions to = Folders("to");
  const std::string fifo = folder_ + "/fifo", hole = folder_ + "/hole";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& file : {fifo, std::string("/dev/zero"), folder_}) {
    to.file = file;
    EXPECT_THAT(std::string(ImportState(to, "root", absl::UnixEpoch()).status().message()),
                HasSubstr("cannot read the archive " + file + ": it is a"));
  }
  std::ofstream(hole) << "";
  fs::resize_file(hole, uintmax_t{1} << 40);
  to.file = hole;
  EXPECT_THAT(std::string(ImportState(to, "root", absl::UnixEpoch()).status().message()),
              HasSubstr("is no archive"));
}

TEST_F(StateBackupTest, AnImportThatWasKilledLeavesNothingForTheNext) {
  ASSERT_TRUE(ExportState(from_).ok());
  const BackupOptions to = Folders("to");
  ASSERT_TRUE(cache::OpenPrivateFolder(to.state_folder).ok());
  fs::create_directory(to.state_folder + "/import.aB3xYz");
  std::ofstream(to.state_folder + "/import.aB3xYz/users") << "half of";
  std::ofstream(to.state_folder + "/import.000000") << "";
  // Other names are not of imports.
  fs::create_directory(to.state_folder + "/import.of.others");
  std::ofstream(to.state_folder + "/important") << "";
  ASSERT_TRUE(ImportState(to, "root", absl::UnixEpoch()).ok());
  EXPECT_FALSE(fs::exists(to.state_folder + "/import.aB3xYz"));
  EXPECT_FALSE(fs::exists(to.state_folder + "/import.000000"));
  EXPECT_TRUE(fs::exists(to.state_folder + "/import.of.others"));
  EXPECT_TRUE(fs::exists(to.state_folder + "/important"));
  EXPECT_EQ(RemoveUnfinishedImports(to.state_folder), 0);
}

}  // namespace
}  // namespace kiln::backup
