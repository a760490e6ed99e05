// Disk usage of the files of saved sessions, by session and by user.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_FOLDER_USE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_FOLDER_USE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace kiln::sessions {

// The name of a file begins with the stem of its session: the part before the first dot. The stem
// begins with the prefix of its user. Not thread-safe.
class FolderUse {
 public:
  static constexpr size_t kPrefixBytes = 18;

  // Scans the folder once, in time linear in its files. Files being written (".draft") are not
  // counted: each will replace another file.
  static FolderUse Look(const std::string& folder);

  int64_t files() const { return files_; }
  // The size of all files except those of the session with the stem `except`; of all files if it is
  // empty.
  int64_t Total(absl::string_view except) const { return total_ - OfSession(except); }
  // The same for the files of one user.
  int64_t OfUser(absl::string_view prefix, absl::string_view except) const;
  // Sets the size of the session's files to `bytes`.
  void Set(const std::string& stem, int64_t bytes);
  // The sizes of sessions add up to those of their users, and these to the total.
  void Validate() const;

 private:
  int64_t OfSession(absl::string_view stem) const;

  int64_t files_ = 0;
  int64_t total_ = 0;
  absl::flat_hash_map<std::string, int64_t> of_users_;     // by prefix
  absl::flat_hash_map<std::string, int64_t> of_sessions_;  // by stem
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_FOLDER_USE_H_
