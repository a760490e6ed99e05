// One daemon for each state folder: two would each write the users and limits that they know over
// the other's.
#ifndef KILN_SERVER_STATE_FOLDER_LOCK_H_
#define KILN_SERVER_STATE_FOLDER_LOCK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kiln::state {

// Holds a lock on `<folder>/lock` for as long as it lives. The system drops the lock when the
// process ends, however that happens; the file, which says who holds it, stays.
class FolderLock {
 public:
  // Waits so long at most for a process that has it and is about to end, or was killed a moment
  // ago. ALREADY_EXISTS: another process has it; the message says which, and what to do.
  // UNAVAILABLE: the file cannot be made. Calls `pause` between two looks at the lock; by default
  // it sleeps for 20 ms.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(
      const std::string& folder, absl::Duration patience = absl::Seconds(30),
      const std::function<void()>& pause = Pause);
  ~FolderLock();
  // This process is about to end: whoever wants the folder may wait for that. Clients see a daemon
  // as gone once it does not answer, which is a moment before its process is.
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
