#include "drivers/cpu/interruption.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

struct Running {
  sigjmp_buf back;
  const std::atomic<bool>* unwanted;
};

// The range that this thread runs. Lock-free, because the signal handler reads it.
thread_local std::atomic<Running*> running = nullptr;
static_assert(std::atomic<Running*>::is_always_lock_free);

// A signal that neither the C library nor a sanitizer uses.
int Signal() { return SIGRTMIN + 5; }

void Look(int) {
  Running* const interrupted = running.load(std::memory_order_relaxed);
  if (interrupted == nullptr || !interrupted->unwanted->load()) return;
  running.store(nullptr, std::memory_order_relaxed);
  siglongjmp(interrupted->back, 1);
}

// Called before the signal is first sent and before a range first runs: without a handler the
// signal would end the process.
void InstallOnce() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = Look;
    // The jump out of the handler does not restore the mask, so the signal must not be blocked in
    // the handler.
    action.sa_flags = SA_NODEFER | SA_RESTART;
    return sigaction(Signal(), &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

// The creator of this thread may have blocked all signals.
void ListenOnce() {
  thread_local bool listens = false;
  if (listens) return;
  listens = true;
  InstallOnce();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, Signal());
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

bool RunInterruptibly(const Range& range, const std::atomic<bool>* unwanted) {
  KILN_CHECK_LE(range.begin, range.end);
  if (unwanted == nullptr) {
    range.run(range.context, range.begin, range.end, range.scratch);
    return true;
  }
  ListenOnce();
  KILN_CHECK(running.load(std::memory_order_relaxed) == nullptr) << "a range within a range";
  Running here;
  here.unwanted = unwanted;
  if (sigsetjmp(here.back, /*savemask=*/0) != 0) return false;
  running.store(&here, std::memory_order_relaxed);
  // Compiler barriers for the handler, which runs on this thread: from here on it may jump.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool runs = !unwanted->load();
  if (runs) range.run(range.context, range.begin, range.end, range.scratch);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running.store(nullptr, std::memory_order_relaxed);
  return runs;
}

void Interrupt(pid_t thread) {
  InstallOnce();
  syscall(SYS_tgkill, getpid(), thread, Signal());
}

}  // namespace kiln::drivers::cpu
