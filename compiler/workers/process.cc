#include "compiler/workers/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>  // sigabbrev_np
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::workers {
namespace {

// Bound on the captured stderr of a process.
constexpr size_t kSaidBytes = 400;
constexpr int kNicest = 19;

absl::Status StartError(int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot start a process: ", std::strerror(error),
                   error == EAGAIN ? " (too many; raise TasksMax or ulimit -u)" : ""));
}

// Moves the descriptor above the numbers of the child's own files, so that installing those closes
// none of these.
absl::StatusOr<Descriptor> MovedUp(Descriptor low) {
  Descriptor high(fcntl(low.get(), F_DUPFD_CLOEXEC, Process::kSocket + 1));
  if (high.get() < 0) return StartError(errno);
  return high;
}

struct SpawnActions {
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  posix_spawn_file_actions_t actions;
};
struct SpawnAttributes {
  SpawnAttributes() { posix_spawnattr_init(&attributes); }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes); }
  posix_spawnattr_t attributes;
};

int SetSignals(posix_spawnattr_t* attributes) {
  sigset_t all, blocked;
  sigfillset(&all);
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&blocked, signal);
  int error = posix_spawnattr_setsigdefault(attributes, &all);
  if (error == 0) error = posix_spawnattr_setsigmask(attributes, &blocked);
  if (error == 0)
    error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  return error;
}

int SetFiles(posix_spawn_file_actions_t* actions, int socket, int errors) {
  int error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (error == 0)
    error = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, errors, STDERR_FILENO);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, socket, Process::kSocket);
  // Some files opened by drivers' libraries are not closed on exec.
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, Process::kSocket + 1);
  return error;
}

// Returns 0 or an errno value.
int Spawn(const std::vector<std::string>& command, int socket, int errors, pid_t* pid) {
  SpawnActions files;
  SpawnAttributes signals;
  int error = SetFiles(&files.actions, socket, errors);
  if (error == 0) error = SetSignals(&signals.attributes);
  if (error != 0) return error;
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return posix_spawn(pid, words[0], &files.actions, &signals.attributes, words.data(), environ);
}

// Never blocks: a pipe keeps the first 64 KiB; further output of the child is dropped, and the
// child does not wait either.
std::string ReadSaid(int pipe) {
  char bytes[kSaidBytes];
  const ssize_t size = read(pipe, bytes, sizeof bytes);
  if (size <= 0) return "";
  return std::string(absl::StripAsciiWhitespace({bytes, static_cast<size_t>(size)}));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::string Ending::ToString() const {
  if (signal == 0) return absl::StrCat("exited with status ", status);
  const char* name = sigabbrev_np(signal);
  return absl::StrCat("was ended by ", name == nullptr ? absl::StrCat("signal ", signal)
                                                       : absl::StrCat("SIG", name));
}

std::chrono::nanoseconds ProcessorTimeOf(pid_t process) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0)
    return std::chrono::nanoseconds::zero();
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

void Process::CloseSocketOnExec() { fcntl(kSocket, F_SETFD, FD_CLOEXEC); }

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& command) {
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return StartError(errno);
  Descriptor socket(sockets[0]);
  absl::StatusOr<Descriptor> child_socket = MovedUp(Descriptor(sockets[1]));
  if (!child_socket.ok()) return child_socket.status();
  // Non-blocking, so that a child that writes much does not wait for a reader.
  if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) return StartError(errno);
  Descriptor errors(pipes[0]);
  absl::StatusOr<Descriptor> child_errors = MovedUp(Descriptor(pipes[1]));
  if (!child_errors.ok()) return child_errors.status();
  pid_t pid = 0;
  const int error = Spawn(command, child_socket->get(), child_errors->get(), &pid);
  if (error != 0) return StartError(error);
  return std::unique_ptr<Process>(new Process(pid, std::move(socket), std::move(errors)));
}

Process::~Process() {
  if (pid_ != 0) End();
}

void Process::Yield() const {
  const sched_param none{};
  if (sched_setscheduler(pid_, SCHED_IDLE, &none) != 0)
    setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), kNicest);
}

bool Process::IsQuiet() const {
  pollfd poll_socket{socket_.get(), POLLIN, 0};
  return poll(&poll_socket, 1, 0) == 0;
}

void Process::Kill(std::chrono::milliseconds patience) const {
  KILN_CHECK_GT(pid_, 0);
  kill(pid_, SIGKILL);
  // Readable when the process has ended, also before End waits for it.
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (process.get() < 0) return;
  pollfd poll_process{process.get(), POLLIN, 0};
  poll(&poll_process, 1, static_cast<int>(patience.count()));
}

Ending Process::End() {
  KILN_CHECK_GT(pid_, 0) << "a process is ended twice";
  // Only this object waits for the process, so its number has not been reused. A process that is
  // already ending keeps its own exit status.
  kill(pid_, SIGKILL);
  int status = 0;
  pid_t waited = 0;
  do {
    waited = waitpid(pid_, &status, 0);
  } while (waited < 0 && errno == EINTR);
  pid_ = 0;
  Ending ending;
  ending.said = ReadSaid(errors_.get());
  if (waited < 0) return ending;
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return ending;
}

}  // namespace kiln::workers
