// A child process with a socket to it.
#ifndef KILN_COMPILER_WORKERS_PROCESS_H_
#define KILN_COMPILER_WORKERS_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::workers {

// A file descriptor, closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return number_; }

 private:
  int number_ = -1;
};

// How a process ended.
struct Ending {
  int signal = 0;  // that ended it; 0: it exited, with `status`
  int status = 0;
  std::string said;  // the first that it wrote to stderr, any bytes

  std::string ToString() const;  // "was ended by SIGABRT", "exited with status 3"
};

// Not thread-safe.
class Process {
 public:
  // The number of its end of the socket in the child.
  static constexpr int kSocket = 3;

  // Executes `command`, whose first word is a path. The child has the socket, an empty stdin and
  // stdout, a stderr that `Ending::said` shows, and no other open file; SIGINT, SIGTERM, SIGHUP and
  // SIGQUIT, which a terminal or systemd send to all processes of a daemon, are blocked there.
  //
  // posix_spawn(3) copies nothing of this process, so that other threads may do anything meanwhile.
  // The calling thread is what the child sees as its parent for PR_SET_PDEATHSIG (prctl(2)).
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& command);

  // The child's to call before all else: else a process that a vendor's library starts there would
  // keep the socket open, and who waits for the child's end would wait for that one's.
  static void CloseSocketOnExec();

  // Ends it.
  ~Process();

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  // It has neither sent anything that was not received nor ended.
  bool IsQuiet() const;
  // Ends it with SIGKILL if it has not ended yet, and waits for it. To be called once.
  Ending End();

 private:
  Process(pid_t pid, Descriptor socket, Descriptor errors)
      : pid_(pid), socket_(std::move(socket)), errors_(std::move(errors)) {}

  pid_t pid_;  // 0: it was waited for
  Descriptor socket_;
  Descriptor errors_;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_PROCESS_H_
