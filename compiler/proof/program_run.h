// A loop program run at samples of its points: each loop that stands for an axis of the schedule's
// plan takes the axis's sampled values alone.
#ifndef KILN_COMPILER_PROOF_PROGRAM_RUN_H_
#define KILN_COMPILER_PROOF_PROGRAM_RUN_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/proof/copies.h"
#include "compiler/proof/evaluator.h"
#include "compiler/proof/kernel_run.h"
#include "compiler/proof/samples.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::proof {

class ProgramRun : private Evaluator {
 public:
  // All must outlive the run.
  ProgramRun(const kernel::Kernel& kernel, const schedule::Plan& plan,
             const schedule::LoopProgram& program);

  // What the program writes to its globals, for the inputs of a seed. `backwards`: the tasks of a
  // section and the threads of a block run in reverse order, which must not matter. INTERNAL: an
  // access beyond a buffer's end, a read of what was never written, a loop longer than its axis.
  absl::StatusOr<const Memory*> Run(const Samples& samples, uint64_t seed, bool backwards);

  // How many of the program's stores no run has reached.
  int NumUnreached() const { return stores_ - static_cast<int>(reached_.size()); }

 private:
  // A copy whose loops were met last for a buffer, and the ranges' values there.
  struct Copy {
    const std::vector<CopyStore>* stores = nullptr;
    Environment environment;
    absl::flat_hash_map<int64_t, Value> known;
  };

  void RunTasks(const schedule::Section& section, size_t depth);
  void RunBody(const std::vector<schedule::Statement>& body);
  void RunLoop(const schedule::Loop& loop, int axis);
  void RunStore(const schedule::Store& store);
  void Write(int buffer, int64_t index, Value value);
  // Takes the statements from `begin` on that copy into one buffer; returns where they end.
  size_t MeetCopy(const std::vector<schedule::Statement>& body, size_t begin);
  // Where a copy begins and ends it may reach beyond a buffer, though no sampled point reads it.
  void CheckEnds(const CopyStore& store);
  Value LoadCopy(int buffer, int64_t index);
  std::optional<Value> ValueAt(const CopyStore& store, absl::Span<const int64_t> values);

  int AxisOf(const ir::Node* range) const;
  // The axis of a loop; nothing for a loop of a copy, and for what is no loop.
  std::optional<int> AxisOf(const schedule::Statement& statement) const;
  bool IsPadding(int buffer, int64_t index) const;
  bool IsInside(int buffer, int64_t index, const char* what);
  bool IsKernelLocal(int buffer) const;
  Element ElementOf(int buffer, int64_t index) const;

  Value Load(int buffer, ir::DType dtype, int64_t index) override;
  void ForEachPoint(absl::Span<const ir::Node* const> ranges,
                    absl::FunctionRef<void()> visit) override;

  const kernel::Kernel& kernel_;
  const schedule::Plan& plan_;
  const schedule::LoopProgram& program_;
  const Samples* samples_ = nullptr;
  uint64_t seed_ = 0;
  Memory globals_;
  int stores_ = 0;
  absl::flat_hash_set<const schedule::Store*> reached_;
  absl::flat_hash_map<Element, Value> nearby_;  // scratch and registers, of a task
  std::map<int, Copy> copies_;                  // by buffer
  absl::flat_hash_map<const schedule::Statement*, std::unique_ptr<std::vector<CopyStore>>>
      copy_stores_;    // by the first statement
  uint64_t turn_ = 0;  // of copies, which ends are looked at
  absl::flat_hash_map<const schedule::Store*, int> checks_;
  bool backwards_ = false;
  int64_t lane_ = 0;    // of the vector loop that runs
  int64_t thread_ = 0;  // by the loops of threads that run
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_PROGRAM_RUN_H_
