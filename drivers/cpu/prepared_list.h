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

// The threads that share the work of a list. The rates decide which kernels are worth waking them
// for.
struct Threads {
  int count = 1;
  Rates rates;
};

// The calls of one list. Run by an Execution, one at a time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel was not loaded by a CPU device.
  static absl::StatusOr<std::shared_ptr<Program>> Make(const CommandList& list,
                                                       const Threads& threads);

  const ListNeeds& needs() const { return needs_; }

  // How many pointers were set, which is all that a replay with other buffers changes.
  int64_t pointers_set() const { return pointers_set_; }

 private:
  friend class Execution;

  enum class Kind : uint8_t { kKernel, kParallelKernel, kCopy, kFill, kSignal, kWait };
  struct Call {
    Kind kind;
    uint8_t value = 0;  // kFill
    // By estimates: a list that may end early reads the clock before this call (looks), and runs it
    // in portions (is_long).
    bool looks = false;
    bool is_long = false;
    int signal = 0;  // kSignal, kWait
    KernelFunction function = nullptr;
    int64_t first = 0;          // first grid point
    int64_t size = 0;           // grid points, or bytes
    int64_t chunk = 0;          // the least that one thread takes
    void** pointers = nullptr;  // arguments, or destination and source
    // For is_long calls: the measured time of a task on all threads together; before the first
    // measurement, many times the estimate.
    double task_seconds = 0;
  };
  // A range of a call's tasks, counted from its first.
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
  // Checks that each call has its pointers, and that each pointer is patched from one slot.
  void Validate() const;
  absl::Status Add(const LaunchCommand& launch, const Threads& threads);
  absl::Status Add(const CopyCommand& copy, const Threads& threads);
  absl::Status Add(const FillCommand& fill, const Threads& threads);
  absl::Status Add(const SignalCommand& command, const Threads& threads);
  absl::Status Add(const WaitCommand& command, const Threads& threads);
  void AddPointer(const SlotRange& range);
  void ResolvePointers();
  void SetPointers(absl::Span<char* const> slots);
  // Sets `looks`, `is_long` and `task_seconds` of a list that may end early.
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
  std::vector<char*> slots_;                 // the addresses that the pointers currently use
  std::vector<void*> pointers_;
  int64_t pointers_set_ = 0;
  double unlooked_seconds_ = 0;  // under construction: since the last call that looks
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
