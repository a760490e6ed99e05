// A child process with a socket to it.
#ifndef KILN_COMPILER_WORKERS_PROCESS_H_
#define KILN_COMPILER_WORKERS_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::workers {

// Owns a file descriptor; closes it when destroyed.
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

// The way in which a process ended.
struct Ending {
  int signal = 0;  // the signal that ended it; 0: it exited, with `status`
  int status = 0;
  std::string said;  // the beginning of its stderr, any bytes

  std::string ToString() const;  // "was ended by SIGABRT", "exited with status 3"
};

// Returns the processor time that a child has used in all its threads; zero if it is gone.
std::chrono::nanoseconds ProcessorTimeOf(pid_t process);

// Not thread-safe.
class Process {
 public:
  // The number of the child's end of the socket.
  static constexpr int kSocket = 3;

  // Executes `command`, whose first word is a path. The child has the socket, an empty stdin and
  // stdout, a stderr that is captured in `Ending::said`, and no other open file. SIGINT, SIGTERM,
  // SIGHUP and SIGQUIT, which a terminal or systemd send to all processes of a daemon, are blocked
  // in it.
  //
  // posix_spawn(3) copies nothing of this process, so other threads may run concurrently. The
  // calling thread is the child's parent for PR_SET_PDEATHSIG (prctl(2)).
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& command);

  // From now on the process gets only processor time that others leave, as far as the system allows
  // that. Processes that it starts inherit it.
  void Yield() const;

  // The child must call this before anything else. Otherwise a process that a vendor's library
  // starts there would keep the socket open, and this process, waiting for the child to close it,
  // would wait for that process too.
  static void CloseSocketOnExec();

  // Kills the process if it has not ended.
  ~Process();

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  // Returns whether it has neither ended nor sent bytes that were not received.
  bool IsQuiet() const;
  // Kills it with SIGKILL, and waits until its memory is free, but no longer than this. End must be
  // called all the same.
  void Kill(std::chrono::milliseconds patience) const;
  // Kills it with SIGKILL if it has not ended yet, and waits for it. Must be called at most once.
  Ending End();

 private:
  Process(pid_t pid, Descriptor socket, Descriptor errors)
      : pid_(pid), socket_(std::move(socket)), errors_(std::move(errors)) {}

  pid_t pid_;  // 0: already waited for
  Descriptor socket_;
  Descriptor errors_;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_PROCESS_H_
