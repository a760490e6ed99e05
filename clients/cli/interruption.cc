#include "clients/cli/interruption.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "proto/check/check.h"

namespace kiln::cli {
namespace {

// The bytes that the pipe carries.
constexpr char kInterrupted = 'i';
constexpr char kOver = 'o';

// The end of the pipe that the signal handler writes to; a handler may do little else
// (signal-safety(7)).
std::atomic<int> signal_pipe[2] = {-1, -1};
struct sigaction action_before;

void OnSignal(int) {
  const int error = errno;
  static_cast<void>(!write(signal_pipe[1], &kInterrupted, 1));
  errno = error;
}

}  // namespace

Interruption::Interruption(std::function<void()> on_interrupt)
    : on_interrupt_(std::move(on_interrupt)) {
  KILN_CHECK_EQ(signal_pipe[0].load(), -1);
  int ends[2];
  KILN_CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
  signal_pipe[0] = ends[0];
  signal_pipe[1] = ends[1];
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &action_before);
  waiter_ = std::thread([this] { Wait(); });
}

void Interruption::Wait() {
  char what = 0;
  while (read(signal_pipe[0], &what, 1) < 0 && errno == EINTR) {
  }
  if (what != kInterrupted) return;
  happened_ = true;
  on_interrupt_();
}

Interruption::~Interruption() {
  sigaction(SIGINT, &action_before, nullptr);
  static_cast<void>(!write(signal_pipe[1], &kOver, 1));
  waiter_.join();
  for (std::atomic<int>& end : signal_pipe) close(end.exchange(-1));
}

}  // namespace kiln::cli
