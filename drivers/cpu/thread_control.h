// What Linux can be asked about the calling thread's time and place.
#ifndef KILN_DRIVERS_CPU_THREAD_CONTROL_H_
#define KILN_DRIVERS_CPU_THREAD_CONTROL_H_

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace kiln::drivers::cpu {

// The numbers of the cores in the process's affinity mask, which is its main thread's, in order.
// Empty if the system does not tell.
std::vector<int> AllowedCores();

// Lets the calling thread run on these cores only. Where the system forbids it nothing changes,
// which is slower at worst.
void RunOnCores(const std::vector<int>& cores);

// How long the calling thread has had a core.
std::chrono::nanoseconds ThreadTime();

// The calling thread's number (gettid(2)), without a system call but the first time.
pid_t ThreadId();

// Asks, once for each thread, for short time slices, which get no larger share of a busy core but
// get it soon after the thread wakes. Linux 6.12 and later know them; others ignore the wish.
void PreferShortSlices();

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_THREAD_CONTROL_H_
