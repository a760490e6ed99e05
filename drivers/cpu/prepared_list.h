// A command list as a flat array of calls.
#ifndef KILN_DRIVERS_CPU_PREPARED_LIST_H_
#define KILN_DRIVERS_CPU_PREPARED_LIST_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/cpu/kernel.h"
#include "drivers/cpu/worker_pool.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/costs.h"

namespace kiln::drivers::cpu {

// Those that share the work of a list. Their rates say which of its kernels are worth waking them.
struct Threads {
  int count = 1;
  Rates rates;
};

// The calls of one list. Run by an Execution, one at a time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel is not a CPU device's.
  static absl::StatusOr<std::shared_ptr<Program>> Make(const CommandList& list,
                                                       const Threads& threads);

  const ListNeeds& needs() const { return needs_; }

  // All that replays with other buffers ever changed.
  int64_t pointers_set() const { return pointers_set_; }

 private:
  friend class Execution;

  enum class Kind : uint8_t { kKernel, kParallelKernel, kCopy, kFill, kSignal, kWait };
  struct Call {
    Kind kind;
    uint8_t value = 0;  // kFill
    // By estimates. A list that may end early looks at the clock before it, and runs it in
    // portions.
    bool looks = false;
    bool is_long = false;
    int signal = 0;  // kSignal, kWait
    KernelFunction function = nullptr;
    int64_t first = 0;          // grid point
    int64_t size = 0;           // grid points, or bytes
    int64_t chunk = 0;          // the least of it that one thread takes
    void** pointers = nullptr;  // arguments, or destination and source
    // Of is_long: what a task takes on all threads together, as measured; before that, many times
    // the estimate.
    double task_seconds = 0;
  };
  // Some tasks of a call, numbered from its first.
  struct Portion {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // pointers_[pointer] = the slot's address + offset.
  struct Patch {
    size_t pointer;
    int64_t offset;
  };

  Program() = default;
  absl::Status Add(const LaunchCommand& launch, const Threads& threads);
  absl::Status Add(const CopyCommand& copy, const Threads& threads);
  absl::Status Add(const FillCommand& fill, const Threads& threads);
  absl::Status Add(const SignalCommand& command, const Threads& threads);
  absl::Status Add(const WaitCommand& command, const Threads& threads);
  void AddPointer(const SlotRange& range);
  void ResolvePointers();
  void SetPointers(absl::Span<char* const> slots);
  // For a list that may end early.
  void SetEstimate(double seconds, Call* call);
  absl::Status Execute(const Call& call, const SubmitOptions& options, WorkerPool& pool) const {
    return Execute(call, {0, call.size}, options, pool);
  }
  absl::Status Execute(const Call& call, const Portion& portion, const SubmitOptions& options,
                       WorkerPool& pool) const;
  static void RunTasks(const Call& call, const Portion& portion, const std::atomic<bool>* unwanted,
                       WorkerPool& pool);
  static void RunKernelRange(const void* call, int64_t begin, int64_t end, void* scratch);
  static void RunCopyRange(const void* call, int64_t begin, int64_t end, void* scratch);
  static void RunFillRange(const void* call, int64_t begin, int64_t end, void* scratch);

  ListNeeds needs_;
  std::vector<Call> calls_;
  std::vector<size_t> first_pointer_;        // of each call
  std::vector<std::vector<Patch>> patches_;  // by slot
  std::vector<char*> slots_;                 // as the pointers have them
  std::vector<void*> pointers_;
  int64_t pointers_set_ = 0;
  double unlooked_seconds_ = 0;  // while it is made: of the calls since the last that looks
};

class CpuPreparedList : public PreparedList {
 public:
  explicit CpuPreparedList(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<Program>& program() const { return program_; }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_PREPARED_LIST_H_
