// Runs a loop program at samples of its points: a loop of an axis of the schedule's plan takes only
// the axis's sampled values.
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
  // All arguments must outlive the run.
  ProgramRun(const kernel::Kernel& kernel, const schedule::Plan& plan,
             const schedule::LoopProgram& program);

  // Returns the elements of globals that the program writes, for the inputs of a seed. `backwards`:
  // runs the tasks of a section and the threads of a block in reverse order, which must not matter.
  // INTERNAL: an access out of bounds, a read of an element that was never written, a loop longer
  // than its axis, or a read of an element that may have been replaced (kernel/in_place.h).
  absl::StatusOr<const Memory*> Run(const Samples& samples, uint64_t seed, bool backwards);

  // Returns the number of the program's stores that no run has reached.
  int NumUnreached() const { return stores_ - static_cast<int>(reached_.size()); }

 private:
  // The copy that last filled a buffer, and the ranges' values at that point.
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
  // Processes the statements from `begin` on that copy into one buffer; returns the index of the
  // next statement.
  size_t MeetCopy(const std::vector<schedule::Statement>& body, size_t begin);
  // Checks the first and last iterations of a copy, which may be out of bounds although no sampled
  // point reads those elements.
  void CheckEnds(const CopyStore& store);
  Value LoadCopy(int buffer, int64_t index);
  std::optional<Value> ValueAt(const CopyStore& store, absl::Span<const int64_t> values);

  int AxisOf(const ir::Node* range) const;
  // Returns the axis of a loop; nothing for a loop of a copy, or if the statement is not a loop.
  std::optional<int> AxisOf(const schedule::Statement& statement) const;
  bool IsPadding(int buffer, int64_t index) const;
  bool IsInside(int buffer, int64_t index, const char* what);
  bool IsKernelLocal(int buffer) const;
  // Returns whether the element was overwritten if the kernel works in place.
  bool IsReplaced(int buffer, int64_t index) const;
  Element ElementOf(int buffer, int64_t index) const;

  Value Load(int buffer, ir::DType dtype, int64_t index) override;
  void ForEachPoint(absl::Span<const ir::Node* const> ranges,
                    absl::FunctionRef<void()> visit) override;

  const kernel::Kernel& kernel_;
  const schedule::Plan& plan_;
  const schedule::LoopProgram& program_;
  // The arguments that may replace one that is read, by that one.
  std::vector<std::vector<int>> replaced_by_;
  bool read_replaced_ = false;  // by the current statement
  const Samples* samples_ = nullptr;
  uint64_t seed_ = 0;
  Memory globals_;
  int stores_ = 0;
  absl::flat_hash_set<const schedule::Store*> reached_;
  absl::flat_hash_map<Element, Value> nearby_;  // scratch and registers of the current task
  std::map<int, Copy> copies_;                  // by buffer
  absl::flat_hash_map<const schedule::Statement*, std::unique_ptr<std::vector<CopyStore>>>
      copy_stores_;    // by the first statement
  uint64_t turn_ = 0;  // counts copies, to vary the ends that are checked
  absl::flat_hash_map<const schedule::Store*, int> checks_;
  bool backwards_ = false;
  int64_t lane_ = 0;    // of the current vector loop
  int64_t thread_ = 0;  // from the current loops over threads
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_PROGRAM_RUN_H_
