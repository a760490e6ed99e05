// Where the sums of a stage's reductions stand while they grow, and what is done with them.
#ifndef KILN_COMPILER_SCHEDULE_ACCUMULATORS_H_
#define KILN_COMPILER_SCHEDULE_ACCUMULATORS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/expression_placer.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/stage_buffers.h"

namespace kiln::schedule {

// Where a stage's reductions keep what they have summed up: one buffer for each kReduce, all laid
// out alike. They hold a value for each point of the loops inside the outermost reduce loop, in
// registers if those loops are all unrolled, lanes or threads, which have registers of their own;
// else in memory; then the innermost tile is carried in registers through the reduce loops inside
// it.
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
  // `reduces`: the stage's kReduce nodes. All must outlive the builder.
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

  // For the points of the axes of `tile`, and of the lanes that are open.
  std::shared_ptr<const Accumulators> New(absl::Span<const int> tile, const State& state,
                                          bool registers);
  // Statements at one point: each set to what its reduction begins with, or to another's value.
  Body Initialise(const State& state, const Accumulators& to);
  Body Copy(const State& state, const Accumulators& from, const Accumulators& to);

  // At one point, in the buffer of reduction number `which`.
  const ir::Node* Index(const Accumulators& from, const State& state);
  const ir::Node* Load(const Accumulators& from, size_t which, const State& state);
  // The reduction's value, of which copies and lanes hold parts: all of it, or the open thread's.
  const ir::Node* Total(size_t which, State state, const Accumulators& from);

  // The axis of which each thread has a part of the sums; -1: none.
  int ThreadAxis(const Accumulators& from) const;
  // For the totals of what threads hold, one for each point of `tile`.
  std::shared_ptr<const Accumulators> NewTotals(absl::Span<const int> tile, int thread_axis);
  // Puts there what the threads hold of reduction number `which`, at one point.
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

#endif  // KILN_COMPILER_SCHEDULE_ACCUMULATORS_H_
