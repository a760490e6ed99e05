// A worker: a process that makes kernels' images for another process, one job at a time, and may
// crash doing so. LLVM's backends abort the process if they cannot select an instruction.
//
// It is the same executable as the process it works for, run with a first argument that --help does
// not show. So both use the same message format, and no other file needs to be installed.
#ifndef KILN_COMPILER_WORKERS_WORKER_H_
#define KILN_COMPILER_WORKERS_WORKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/workers/kernel_compiler.h"
#include "compiler/workers/process.h"

namespace kiln::workers {

// True if the memory of workers can be limited: the sanitizers reserve more address space than any
// limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitsMemory = false;
#else
inline constexpr bool kLimitsMemory = true;
#endif

// Exit status of a worker that cannot allocate more memory.
inline constexpr int kOutOfMemoryStatus = 86;

// Returns the command that starts this executable as a worker; main must call IsWorker first.
// `memory_bytes_max` bounds the worker's allocations; 0: no limit.
std::vector<std::string> WorkerCommand(int64_t memory_bytes_max);
bool IsWorker(int argc, char** argv);

// For a child process that may run wild: it dies with the thread that started it, leaves no core
// file, and is the first that the system ends if memory runs out. Its name in lists of processes is
// `name`.
void LimitThisProcess(const char* name);
// Bounds its allocations, all together: it exits with kOutOfMemoryStatus beyond. 0: no limit.
void LimitMemory(int64_t bytes_max);
// Whether a child ended for lack of memory.
bool IsOutOfMemory(const Ending& ending);

// Executes jobs until the parent closes the socket (Process::kSocket) or dies. Returns main's exit
// status.
int RunWorker(int argc, char** argv, const CompileFunction& compile);

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_WORKER_H_
