// Builds the loops of one stage: where accumulators live, what is staged where, and the stores.
#ifndef KILN_COMPILER_SCHEDULE_STAGE_BUILDER_H_
#define KILN_COMPILER_SCHEDULE_STAGE_BUILDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Where a stage's reductions keep what they have summed up: one buffer for each kReduce, all laid
// out alike. They hold a value for each point of the loops inside the outermost reduce loop, in
// registers if those loops are all unrolled or lanes, else in scratch; then the innermost tile is
// carried in registers through the reduce loops inside it.
struct Accumulators {
  struct Dimension {
    int axis = 0;
    int64_t stride = 0;
  };
  Space space = Space::kRegister;
  std::vector<int> buffers;
  std::vector<Dimension> dimensions;
  std::vector<int> partial;  // reduce axes among the dimensions
};

// A factor of the product that was computed into scratch.
struct StagedOperand {
  struct Term {
    int64_t coefficient = 1;
    int part = 0;  // the axis whose loops were not open
  };
  struct Dimension {
    std::vector<Term> terms;
    int64_t low = 0;
    int64_t stride = 0;
  };
  const ir::Node* operand = nullptr;
  int buffer = 0;
  std::vector<Dimension> dimensions;
};

class StageBuilder {
 public:
  // All must outlive the builder; `program` gets the buffers that are needed.
  // `kernel_buffers` of them are there already.
  StageBuilder(const kernel::Stage& stage, const Plan& plan, const StagePlan& stage_plan,
               Nest& nest, Folder& folder, LoopProgram* program, int kernel_buffers);

  // INVALID_ARGUMENT: an operand cannot be staged as the schedule says.
  absl::Status Check() const;
  // The nest over `loops`, inside what is open in `state`.
  Body Build(absl::Span<const int> loops, State state);

 private:
  struct Environment {
    std::shared_ptr<const Accumulators> accumulators;
    std::vector<StagedOperand> staged;
    bool guarded = false;  // inside a branch on guard_
  };

  bool IsDecided(const ir::Node* condition, const State& state) const;
  const ir::Node* ProductOperand(int operand) const;
  Body Compute(absl::Span<const int> axes, State state, Environment environment);
  Body OpenLoop(absl::Span<const int> axes, State state, Environment environment);
  Body Accumulate(absl::Span<const int> axes, State state, Environment environment);
  Body Shadow(absl::Span<const int> axes, State state, Environment environment);
  Body StageAt(int axis, const State& state, Environment* environment);

  std::vector<int> TileOf(absl::Span<const int> axes) const;
  bool FitsRegisters(absl::Span<const int> tile) const;
  int OpenVectorAxis(const State& state) const;
  std::shared_ptr<const Accumulators> NewAccumulators(absl::Span<const int> tile,
                                                      const State& state, bool registers);
  const ir::Node* AccumulatorIndex(const Accumulators& from, const State& state);
  const ir::Node* AccumulatorLoad(const Accumulators& from, size_t which, const State& state);

  bool ResultsAreLong(const Accumulators& sums) const;
  Body Initialise(const State& state, const Accumulators& to);
  Body Copy(const State& state, const Accumulators& from, const Accumulators& to);
  Body Update(const State& state, const Environment& environment);
  Body StoreResults(const State& state, const Environment& environment);
  Body Fetches(State state);
  std::vector<const ir::Node*> IndicesOf(int buffer) const;
  const ir::Node* Total(size_t which, const State& state, const Accumulators& from);
  const ir::Node* SumOverPartial(size_t which, State state, const Accumulators& from,
                                 absl::Span<const int> partial);

  // Copies of a nest that stand beside each other (peeled ends) use the same buffers: `purpose` and
  // `which` name them.
  int NewBuffer(const std::string& purpose, int which, ir::DType dtype, int64_t elements,
                Space space, int lanes);

  StagedOperand Layout(const StageOperand& directive, const State& state);
  Extent DimensionExtent(const StagedOperand::Dimension& dimension, const State& state) const;
  Body Pack(const StageOperand& directive, const StagedOperand& staged, const State& state);
  // A loop of the copy.
  struct PackLoop {
    StagedOperand::Dimension dimension;
    Extent extent;
    int64_t step = 0;         // in the source, from one iteration to the next, if it is known
    bool transposed = false;  // in squares of lanes by lanes
    std::vector<StagedOperand::Dimension> zeroed = {};  // dimensions that the loop counts too
  };
  std::vector<int64_t> SourceSteps(const StagedOperand& staged, State state);
  std::vector<PackLoop> PackLoops(const StageOperand& directive, const StagedOperand& staged,
                                  const State& state);
  // `square`: the range within a square, unrolled just around the lanes; null: no squares.
  Body PackFrom(const StageOperand& directive, const StagedOperand& staged,
                absl::Span<const PackLoop> loops, const State& state, const ir::Node* index,
                const ir::Node* square);
  Body PackLanes(const StageOperand& directive, const StagedOperand& staged, const State& state,
                 const ir::Node* index, const ir::Node* square);
  Body CountLoop(const Extent& extent, const std::function<Body(const ir::Node*)>& inside);
  void Fix(const StagedOperand::Dimension& dimension, const ir::Node* value, State* state);
  const ir::Node* MaskLoads(const ir::Node* root, const ir::Node* valid);
  const ir::Node* StagedLoad(const StagedOperand& staged, const State& state);

  // The expression at this place: ranges replaced, loads masked, locals addressed.
  const ir::Node* Place(const ir::Node* root, const State& state, Folder::Map* memo);
  const ir::Node* Finish(const ir::Node* node, const State& state, Folder::Map* memo);
  const ir::Node* LocalIndex(int buffer, const ir::Node* index, const State& state);
  Folder::Map RangeValues(const State& state);
  const ir::Node* LaneMasks(const State& state, bool reduce_only);

  const kernel::Stage& stage_;
  const Plan& plan_;
  const StagePlan& stage_plan_;
  Nest& nest_;
  Folder& folder_;
  LoopProgram& program_;
  const int kernel_buffers_;
  std::vector<const ir::Node*> reduces_;
  // Of a scatter: where its store is valid, which is asked as far out as it is known. Null: always.
  const ir::Node* guard_ = nullptr;
  std::map<std::tuple<std::string, int, int64_t, Space, int>, int> buffers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_STAGE_BUILDER_H_
