// Ensures one daemon for each state folder: two would overwrite each other's users and limits.
#ifndef KILN_SERVER_STATE_FOLDER_LOCK_H_
#define KILN_SERVER_STATE_FOLDER_LOCK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kiln::state {

// Holds a lock on `<folder>/lock` during its lifetime. The system releases the lock when the
// process ends for any reason; the file, which names the holder, remains.
class FolderLock {
 public:
  // Waits at most `patience` for a holder that is about to end, or that was just killed.
  // ALREADY_EXISTS: another process holds the lock; the message names it and says what to do.
  // UNAVAILABLE: the file cannot be created. Calls `pause` between two attempts; by default that
  // sleeps for 20 ms.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(
      const std::string& folder, absl::Duration patience = absl::Seconds(30),
      const std::function<void()>& pause = Pause);
  ~FolderLock();
  // Announces that this process is about to end, so that the next daemon waits for it. Clients
  // regard a daemon as gone once it does not answer, which is a moment before its process ends.
  void Ends();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  static void Pause();

  const int file_;
};

}  // namespace kiln::state

#endif  // KILN_SERVER_STATE_FOLDER_LOCK_H_
