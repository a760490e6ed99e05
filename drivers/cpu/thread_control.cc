#include "drivers/cpu/thread_control.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace kiln::drivers::cpu {
namespace {

// The minimum that Linux accepts.
constexpr uint64_t kShortSliceNanoseconds = 100000;

// struct sched_attr of sched_setattr(2), for which the C library has neither type nor function.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

}  // namespace

std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  // The process's id is its main thread's id. 0 would mean the calling thread, which may already be
  // bound to one core.
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void RunOnCores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::chrono::nanoseconds ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

pid_t ThreadId() {
  thread_local const pid_t id = gettid();
  return id;
}

void PreferShortSlices() {
  thread_local bool asked = false;
  if (std::exchange(asked, true)) return;
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  // Other policies use these fields differently, and were chosen for a reason.
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kShortSliceNanoseconds;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace kiln::drivers::cpu
