#include "server/state/sync_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace kiln::state {

absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path();
  const auto failed = [&](const char* what) {
    return absl::UnavailableError(
        absl::StrCat("cannot ", what, " ", folder, ": ", strerror(errno)));
  };
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return failed("open");
  const absl::Status status = fsync(opened) == 0 ? absl::OkStatus() : failed("write");
  close(opened);
  return status;
}

}  // namespace kiln::state
