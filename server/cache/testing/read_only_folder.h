// Runs a test's part in a separate process in which a folder cannot be written to.
#ifndef KILN_SERVER_CACHE_TESTING_READ_ONLY_FOLDER_H_
#define KILN_SERVER_CACHE_TESTING_READ_ONLY_FOLDER_H_

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

namespace kiln::cache {

// The result of InReadOnlyFolder if this process may not mount.
inline constexpr int kMayNotMount = 77;

// Returns the exit status of a process that calls `part`, which returns it. Root may write
// everywhere, so for root the folder is on a read-only mount that only that process sees.
inline int InReadOnlyFolder(const std::string& folder, const std::function<int()>& part) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() != 0) {
      for (const auto& file : std::filesystem::directory_iterator(folder))
        chmod(file.path().c_str(), 0400);
      chmod(folder.c_str(), 0500);
    } else if (unshare(CLONE_NEWNS) != 0 ||
               mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
               mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
               mount("none", folder.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) !=
                   0) {
      _exit(kMayNotMount);
    }
    _exit(part());
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod(folder.c_str(), 0700);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    chmod(file.path().c_str(), 0600);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace kiln::cache

#endif  // KILN_SERVER_CACHE_TESTING_READ_ONLY_FOLDER_H_
