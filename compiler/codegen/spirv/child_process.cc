#include "compiler/codegen/spirv/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::codegen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kLongest{10};
// Bytes of stderr that are kept: the first ones say what went wrong; a stack trace may follow.
constexpr size_t kSaidBytesMax = 1000;

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    CloseEnd(0);
    CloseEnd(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void CloseEnd(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
  int ends[2];  // to read from, to write to
};

// Never returns or throws: the callers continue only in the parent.
[[noreturn]] void Work(const std::function<std::string()>& work, const Pipe& result,
                       const Pipe& said, pid_t parent) noexcept {
  // The child is killed when the parent ends, for any reason. The parent may have ended already.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(2);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // Makes it abort with a message if it runs out of memory.
  std::set_new_handler(nullptr);
  signal(SIGABRT, SIG_DFL);
  signal(SIGSEGV, SIG_DFL);
  dup2(said.ends[1], STDERR_FILENO);
  const std::string bytes = work();
  for (size_t begin = 0; begin < bytes.size();) {
    const ssize_t written = write(result.ends[1], bytes.data() + begin, bytes.size() - begin);
    if (written < 0 && errno != EINTR) _exit(3);
    if (written > 0) begin += static_cast<size_t>(written);
  }
  _exit(0);
}

// Reads both until their ends. Returns false if that takes too long.
bool ReadBoth(Pipe& result, Pipe& said, std::string* bytes, std::string* text) {
  const auto deadline = Clock::now() + kLongest;
  char piece[1 << 16];
  while (result.ends[0] >= 0 || said.ends[0] >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    // poll ignores negative descriptors.
    pollfd ready[] = {{result.ends[0], POLLIN, 0}, {said.ends[0], POLLIN, 0}};
    if (poll(ready, 2, static_cast<int>(left.count())) <= 0) continue;
    for (Pipe* pipe : {&result, &said}) {
      const pollfd& now = ready[pipe == &said];
      if (now.fd < 0 || now.revents == 0) continue;
      const ssize_t size = read(now.fd, piece, sizeof(piece));
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        pipe->CloseEnd(0);
      } else if (pipe == &result) {
        bytes->append(piece, static_cast<size_t>(size));
      } else if (text->size() < kSaidBytesMax) {
        text->append(piece, static_cast<size_t>(size));
      }
    }
  }
  return true;
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string EndingOf(int status, std::string said) {
  said.resize(std::min(said.size(), kSaidBytesMax));
  absl::StripAsciiWhitespace(&said);
  const std::string ending = WIFSIGNALED(status)
                                 ? absl::StrCat("was ended by signal ", WTERMSIG(status))
                                 : absl::StrCat("exited with status ", WEXITSTATUS(status));
  return said.empty() ? ending : absl::StrCat(ending, ": ", said);
}

}  // namespace

absl::StatusOr<std::string> InChildProcess(const std::function<std::string()>& work) {
  Pipe result, said;
  const pid_t parent = getpid();
  const pid_t child = result.ends[0] < 0 || said.ends[0] < 0 ? -1 : fork();
  if (child < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a process for the code generator: ", std::strerror(errno)));
  }
  if (child == 0) Work(work, result, said, parent);
  result.CloseEnd(1);
  said.CloseEnd(1);
  std::string bytes, text;
  const bool in_time = ReadBoth(result, said, &bytes, &text);
  if (!in_time) kill(child, SIGKILL);
  const int status = WaitFor(child);
  if (!in_time) return absl::InternalError("the code generator took longer than ten minutes");
  if (status == 0) return bytes;
  // Messages of LLVM and of the standard library.
  if (absl::StrContains(text, "out of memory") || absl::StrContains(text, "bad_alloc")) {
    return absl::ResourceExhaustedError(
        "the code generator ran out of memory; split the computation of this kernel");
  }
  return absl::InternalError(
      absl::StrCat("the process of the code generator ", EndingOf(status, std::move(text))));
}

}  // namespace kiln::codegen
