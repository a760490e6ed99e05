// Builds the loops of one stage: the initialization and end of sums, staged operands, and stores.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUILDER_H_
#define KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUILDER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/apply/accumulators.h"
#include "compiler/schedule/apply/expression_placer.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/apply/operand_packer.h"
#include "compiler/schedule/apply/stage_buffers.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

class StageBuilder {
 public:
  // `stage` is one of `kernel`. The arguments must outlive the builder. `program` gets the buffers
  // that are needed; it already has the kernel's.
  StageBuilder(const kernel::Kernel& kernel, const kernel::Stage& stage, const Plan& plan,
               const StagePlan& stage_plan, Nest& nest, kernel::ExpressionFolder& folder,
               LoopProgram* program);
  StageBuilder(const StageBuilder&) = delete;  // its parts hold pointers to each other

  // Returns INVALID_ARGUMENT if an operand cannot be staged as the schedule says.
  absl::Status Check() const;
  // Returns the nest over `loops`, inside the open loops of `state`.
  Body Build(absl::Span<const int> loops, State state);

 private:
  struct Environment {
    std::shared_ptr<const Accumulators> accumulators;
    int block = -1;  // the outermost axis of the block that they accumulate, or -1: the whole sum
    int depth = 0;   // how many blocks are open
    std::vector<StagedOperand> staged;
    bool guarded = false;               // inside a branch on guard_
    std::vector<const ir::Node*> held;  // those of needed_ that hold here
  };

  bool IsDecided(const ir::Node* condition, const State& state) const;
  bool IsKnownOutsideTile(const ir::Node* condition) const;
  std::vector<const ir::Node*> FindNeeded() const;
  const ir::Node* ProductOperand(int operand) const;
  bool FitsMatrixUnit() const;
  Body Compute(absl::Span<const int> axes, State state, Environment environment);
  Body OpenLoop(absl::Span<const int> axes, State state, Environment environment);
  Body Accumulate(absl::Span<const int> axes, State state, Environment environment);
  Body CarryTileInRegisters(absl::Span<const int> axes, State state, Environment environment);
  Body AddUpBlock(absl::Span<const int> axes, State state, Environment environment);
  Body StageAt(int axis, const State& state, Environment* environment);

  Body CombineThreads(absl::Span<const int> tile, State state, Environment* environment);

  std::vector<int> TileOf(absl::Span<const int> axes) const;
  std::vector<int> ParallelOf(absl::Span<const int> tile) const;
  bool FitsRegisters(absl::Span<const int> tile) const;
  int64_t CountResultOperations() const;
  bool ResultsAreLong(const Accumulators& sums) const;
  Body StoreInLoops(absl::Span<const int> axes, State state, const Environment& environment);
  Body Update(const State& state, const Environment& environment);
  Body StoreResults(const State& state, const Environment& environment);
  Body Fetches(State state);
  std::vector<const ir::Node*> IndicesOf(int buffer) const;
  const std::vector<const ir::Node*>& reduces() const { return sums_.reduces(); }

  const kernel::Stage& stage_;
  const std::vector<int> store_order_;
  const Plan& plan_;
  const StagePlan& stage_plan_;
  Nest& nest_;
  kernel::ExpressionFolder& folder_;
  LoopProgram& program_;
  const ExpressionPlacer placer_;
  StageBuffers buffers_;
  AccumulatorBuilder sums_;
  OperandPacker packer_;
  // For a scatter: the condition of its store, which is tested as far out as it is known. Null:
  // always.
  const ir::Node* guard_ = nullptr;
  // Conditions without any of which the terms of all sums are left out; each is tested as far out
  // as it is known.
  const std::vector<const ir::Node*> needed_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_STAGE_BUILDER_H_
