// Saves the state of a daemon and the results of its tuner in one file, and restores them.
#ifndef KILN_SERVER_BACKUP_STATE_BACKUP_H_
#define KILN_SERVER_BACKUP_STATE_BACKUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/backup/archive.h"

namespace kiln::backup {

struct BackupOptions {
  std::string file;      // the archive
  std::string key_file;  // 32 bytes; made by ExportState if it does not exist
  std::string state_folder;
  std::string cache_folder;
  bool with_sessions = false;  // of ExportState
  bool overwrite = false;
};

// Writes users, tokens, limits, ended sessions, the audit log and the tuner's settings, also while
// a daemon changes them; with_sessions: the saved sessions, too, which requires that none does.
// Returns what was written. FAILED_PRECONDITION: there is no state, or the file exists and is not
// to be overwritten or is not a regular one. ALREADY_EXISTS: a daemon uses the folder. UNAVAILABLE:
// a file cannot be read or written; there is no archive then.
absl::StatusOr<std::vector<ArchivedFile>> ExportState(const BackupOptions& options);

// Replaces the state by an archive's, once all of that was checked. Files of the state that the
// archive lacks are removed; sessions and settings stay if it has none. Appends an event of `user`
// to the restored audit log. Returns what was restored. INVALID_ARGUMENT: the archive is damaged,
// or has another key; FAILED_PRECONDITION: there is a state, and it is not to be overwritten;
// DATA_LOSS: the archive's tables are not of a version that this daemon reads; ALREADY_EXISTS: a
// daemon uses the folder. Nothing was changed then. UNAVAILABLE: a file cannot be written; calling
// it again completes the work.
absl::StatusOr<std::vector<ArchivedFile>> ImportState(const BackupOptions& options,
                                                      const std::string& user, absl::Time now);

// Removes what imports left in a state folder that were killed, and returns how many. Requires: the
// folder's lock is held, so that none is running.
int RemoveUnfinishedImports(const std::string& state_folder);

}  // namespace kiln::backup

#endif  // KILN_SERVER_BACKUP_STATE_BACKUP_H_
