#include "server/sessions/checkpoint/folder_use.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"

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
}

int64_t FolderUse::OfSession(absl::string_view stem) const {
  const auto found = of_sessions_.find(stem);
  return found == of_sessions_.end() ? 0 : found->second;
}

}  // namespace kiln::sessions
