#include "server/sessions/checkpoint/folder_use.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "proto/check/check.h"

namespace kiln::sessions {

FolderUse FolderUse::Look(const std::string& folder) {
  FolderUse use;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    ++use.files_;
    const std::string name = entry.path().filename();
    if (absl::EndsWith(name, ".draft")) continue;
    const auto size = entry.file_size(error);
    if (error) continue;
    const std::string stem = name.substr(0, name.find('.'));
    use.Set(stem, use.OfSession(stem) + static_cast<int64_t>(size));
  }
  return use;
}

int64_t FolderUse::OfUser(absl::string_view prefix, absl::string_view except) const {
  const auto found = of_users_.find(prefix);
  if (found == of_users_.end()) return 0;
  return found->second - (absl::StartsWith(except, prefix) ? OfSession(except) : 0);
}

void FolderUse::Set(const std::string& stem, int64_t bytes) {
  int64_t& of_session = of_sessions_[stem];
  total_ += bytes - of_session;
  of_users_[stem.substr(0, kPrefixBytes)] += bytes - of_session;
  of_session = bytes;
  KILN_VALIDATE(*this, of_sessions_.size());
}

void FolderUse::Validate() const {
  int64_t total = 0;
  absl::flat_hash_map<absl::string_view, int64_t> of_users;
  for (const auto& [stem, bytes] : of_sessions_) {
    total += bytes;
    of_users[absl::string_view(stem).substr(0, kPrefixBytes)] += bytes;
  }
  KILN_CHECK_EQ(total_, total);
  KILN_CHECK_EQ(of_users_.size(), of_users.size());
  for (const auto& [prefix, bytes] : of_users) {
    const auto found = of_users_.find(prefix);
    KILN_CHECK(found != of_users_.end()) << prefix;
    KILN_CHECK_EQ(found->second, bytes) << prefix;
  }
}

int64_t FolderUse::OfSession(absl::string_view stem) const {
  const auto found = of_sessions_.find(stem);
  return found == of_sessions_.end() ? 0 : found->second;
}

}  // namespace kiln::sessions
