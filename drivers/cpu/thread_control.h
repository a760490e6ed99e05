// Scheduling requests and queries for the calling thread on Linux.
#ifndef KILN_DRIVERS_CPU_THREAD_CONTROL_H_
#define KILN_DRIVERS_CPU_THREAD_CONTROL_H_

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace kiln::drivers::cpu {

// The numbers of the cores in the affinity mask of the process's main thread, in order. Empty if
// the system call fails.
std::vector<int> AllowedCores();

// Restricts the calling thread to these cores. If the system refuses, nothing changes, which can
// only cost speed.
void RunOnCores(const std::vector<int>& cores);

// The processor time that the calling thread has used.
std::chrono::nanoseconds ThreadTime();

// The calling thread's id (gettid(2)); makes a system call only the first time.
pid_t ThreadId();

// Requests short time slices, once for each thread: the thread's share of a busy core stays the
// same, but it gets the core soon after it wakes. Needs Linux 6.12; older kernels ignore the
// request.
void PreferShortSlices();

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_THREAD_CONTROL_H_
