#include "compiler/workers/worker.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/message.h"

namespace kiln::workers {
namespace {

constexpr char kArgument[] = "--compile_worker";
// If a job leaves more than this in malloc's free lists, the memory is returned to the system.
constexpr size_t kTrimAfter = size_t{64} << 20;

void SetLimit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(resource, &limit);
}

void GiveBackMemory() {
  if (mallinfo2().fordblks > kTrimAfter) malloc_trim(0);
}

}  // namespace

std::vector<std::string> WorkerCommand(int64_t memory_bytes_max) {
  // Refers to this executable even after it was replaced on disk.
  return {"/proc/self/exe", kArgument, absl::StrCat(memory_bytes_max)};
}

void LimitThisProcess(const char* name) {
  // It is killed however the parent process ends, even while a job uses all of its time.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  // The log says why it died; a core file would only fill the disk.
  SetLimit(RLIMIT_CORE, 0);
  // If the machine runs out of memory, the system should kill a child and not the daemon. (A
  // process may always raise its own score.)
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

void LimitMemory(int64_t bytes_max) {
  if (!kLimitsMemory || bytes_max <= 0) return;
  SetLimit(RLIMIT_DATA, static_cast<rlim_t>(bytes_max));
  std::set_new_handler([] { _exit(kOutOfMemoryStatus); });
}

bool IsOutOfMemory(const Ending& ending) {
  // LLVM's own allocations fail with that message instead.
  return ending.status == kOutOfMemoryStatus ||
         (ending.signal != 0 && absl::StrContains(ending.said, "out of memory"));
}

bool IsWorker(int argc, char** argv) { return argc == 3 && std::string_view(argv[1]) == kArgument; }

int RunWorker(int argc, char** argv, const CompileFunction& compile) {
  Process::CloseSocketOnExec();
  int64_t memory_bytes_max = 0;
  if (!IsWorker(argc, argv) || !absl::SimpleAtoi(argv[2], &memory_bytes_max)) return 2;
  LimitThisProcess("kiln-worker");
  LimitMemory(memory_bytes_max);
  std::string message;
  while (Receive(Process::kSocket, &message, Deadline()) == Transfer::kDone) {
    uint64_t number = 0;
    KernelJob job;
    if (!DecodeJob(message, &number, &job)) {
      std::fputs("invalid job\n", stderr);
      return 2;
    }
    const std::string answer = EncodeAnswer(number, compile(job));
    if (Send(Process::kSocket, answer, Deadline()) != Transfer::kDone) return 2;
    GiveBackMemory();
  }
  return 0;
}

}  // namespace kiln::workers
