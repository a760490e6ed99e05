// A worker: a process that makes kernels' images for another one, a job at a time, and may die of
// it. LLVM's backends end their process at what they cannot select.
//
// It is the executable of the process that it works for, run once more with a first argument that
// --help does not show: so both speak the same language, and there is nothing else to install.
#ifndef KILN_COMPILER_WORKERS_WORKER_H_
#define KILN_COMPILER_WORKERS_WORKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/workers/kernel_compiler.h"

namespace kiln::workers {

// Whether the memory of workers can be limited: the sanitizers reserve more address space than any
// limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitsMemory = false;
#else
inline constexpr bool kLimitsMemory = true;
#endif

// A worker that gets no more memory exits with this.
inline constexpr int kOutOfMemoryStatus = 86;

// What starts this executable as a worker; its main asks IsWorker before anything else.
// `memory_bytes_max` is what it may allocate; 0: any amount.
std::vector<std::string> WorkerCommand(int64_t memory_bytes_max);
bool IsWorker(int argc, char** argv);

// Does jobs until whoever started it closes the socket (Process::kSocket) or dies. For main to
// return.
int RunWorker(int argc, char** argv, const CompileFunction& compile);

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_WORKER_H_
