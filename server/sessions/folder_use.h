// What the files of kept sessions take on the disk, by session and by user.
#ifndef KILN_SERVER_SESSIONS_FOLDER_USE_H_
#define KILN_SERVER_SESSIONS_FOLDER_USE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace kiln::sessions {

// A file's name begins with its session's stem, which ends before the first dot and begins with its
// user's prefix. Not thread-safe.
class FolderUse {
 public:
  static constexpr size_t kPrefixBytes = 18;

  // One look at the folder: a step for each file. What is being written (".draft") does not count:
  // it takes the place of another.
  static FolderUse Look(const std::string& folder);

  int64_t files() const { return files_; }
  // Of all files but those of the session with the stem `except`; empty: of all.
  int64_t Total(absl::string_view except) const { return total_ - OfSession(except); }
  // Of one user's.
  int64_t OfUser(absl::string_view prefix, absl::string_view except) const;
  // The session's files now take `bytes`.
  void Set(const std::string& stem, int64_t bytes);

 private:
  int64_t OfSession(absl::string_view stem) const;

  int64_t files_ = 0;
  int64_t total_ = 0;
  absl::flat_hash_map<std::string, int64_t> of_users_;     // by prefix
  absl::flat_hash_map<std::string, int64_t> of_sessions_;  // by stem
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_FOLDER_USE_H_
