// Accumulators of a stage's reductions: where they are, and the code that updates and combines
// them.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_ACCUMULATORS_H_
#define KILN_COMPILER_SCHEDULE_APPLY_ACCUMULATORS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/apply/expression_placer.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/apply/stage_buffers.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Where a stage's reductions accumulate: one buffer for each kReduce, all with the same layout. A
// buffer holds a value for each point of the loops inside the outermost reduce loop. It is in
// registers if those loops are all unrolled, lanes or threads (each thread has its own registers),
// else in memory. In memory, the innermost tile is carried in registers through the reduce loops
// inside it. Each block of a long sum (../blocks_of_sums.h) has accumulators of its own, one for
// each point of the loops inside the block's outermost one.
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

class AccumulatorBuilder {
 public:
  // `reduces`: the stage's kReduce nodes. The arguments held by reference must outlive the builder.
  AccumulatorBuilder(std::vector<const ir::Node*> reduces, const Plan& plan, Nest& nest,
                     kernel::ExpressionFolder& folder, const ExpressionPlacer& placer,
                     StageBuffers& buffers)
      : reduces_(std::move(reduces)),
        plan_(plan),
        nest_(nest),
        folder_(folder),
        placer_(placer),
        buffers_(buffers) {}

  const std::vector<const ir::Node*>& reduces() const { return reduces_; }

  // Returns accumulators for the points of the axes of `tile` and for the open lanes. Those of a
  // block have another `depth` than those outside.
  std::shared_ptr<const Accumulators> New(absl::Span<const int> tile, const State& state,
                                          Space space, int depth = 0);
  // Return statements for one point, which set each accumulator to its reduction's identity, copy
  // another one's value, or combine the two.
  Body Initialise(const State& state, const Accumulators& to);
  Body Copy(const State& state, const Accumulators& from, const Accumulators& to);
  Body Add(const State& state, const Accumulators& from, const Accumulators& to);

  // Index and load at one point, in the buffer of reduction number `which`.
  const ir::Node* Index(const Accumulators& from, const State& state);
  const ir::Node* Load(const Accumulators& from, size_t which, const State& state);
  // Returns the reduction's value, combined from the partial sums of copies and lanes: the whole
  // value, or the open thread's part.
  const ir::Node* Total(size_t which, State state, const Accumulators& from);

  // Returns the axis whose threads each hold a part of the sums, or -1.
  int ThreadAxis(const Accumulators& from) const;
  // Returns buffers for the totals over the threads, one for each point of `tile`.
  std::shared_ptr<const Accumulators> NewTotals(absl::Span<const int> tile, int thread_axis);
  // Combines the threads' parts of reduction number `which`, at one point, into `totals`.
  Statement CombineThreads(size_t which, const State& state, const Accumulators& from,
                           const Accumulators& totals);

 private:
  const ir::Node* SumOverPartial(size_t which, State state, const Accumulators& from,
                                 absl::Span<const int> partial);

  const std::vector<const ir::Node*> reduces_;
  const Plan& plan_;
  Nest& nest_;
  kernel::ExpressionFolder& folder_;
  const ExpressionPlacer& placer_;
  StageBuffers& buffers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_ACCUMULATORS_H_
