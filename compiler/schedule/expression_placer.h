// The kernel's expressions at one place of the nest that is being built: ranges have become loops,
// lanes and constants, loads are masked, locals are addressed.
#ifndef KILN_COMPILER_SCHEDULE_EXPRESSION_PLACER_H_
#define KILN_COMPILER_SCHEDULE_EXPRESSION_PLACER_H_

#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

class ExpressionPlacer {
 public:
  // All must outlive the placer. The first `kernel_buffers` of the program's are the kernel's own.
  ExpressionPlacer(const Plan& plan, Nest& nest, kernel::ExpressionFolder& folder,
                   const LoopProgram& program, int kernel_buffers)
      : plan_(plan),
        nest_(nest),
        folder_(folder),
        program_(program),
        kernel_buffers_(kernel_buffers) {}

  // By the kernel's ranges.
  kernel::ExpressionFolder::Map RangeValues(const State& state) const;
  // `memo`: RangeValues, and what else the place knows; it grows as in
  // ExpressionFolder::Substitute. Null stays null.
  const ir::Node* Place(const ir::Node* root, const State& state,
                        kernel::ExpressionFolder::Map* memo) const;
  // A local of a stage inside the grid's lanes has an element for each lane.
  const ir::Node* LocalIndex(int buffer, const ir::Node* index, const State& state) const;

  // The vector axis whose lanes are open; -1: none.
  int OpenVectorAxis(const State& state) const;
  // Whether the place is one that exists, of the padded axes; null: always. `load`: of those alone
  // on which this load of the kernel's depends, its condition included; null: of all.
  const ir::Node* PaddingMasks(const State& state, const ir::Node* load) const;
  // Which of the lanes are real; null: all. `reduce_only`: of those along a reduction.
  const ir::Node* LaneMasks(const State& state, bool reduce_only) const;

 private:
  const ir::Node* Finish(const ir::Node* node, const State& state,
                         kernel::ExpressionFolder::Map* memo) const;
  bool DependsOnAxis(const ir::Node* root, int axis) const;
  // Enters loads that padded axes move, with their masks.
  void MaskPadding(const ir::Node* root, const State& state,
                   kernel::ExpressionFolder::Map* memo) const;
  // Whether lanes beyond a ragged end may read the buffer, too: scratch memory goes on up to whole
  // lines of the cache.
  bool MayReadAnyLane(int buffer, const ir::Node* index) const;

  const Plan& plan_;
  Nest& nest_;
  kernel::ExpressionFolder& folder_;
  const LoopProgram& program_;
  const int kernel_buffers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_EXPRESSION_PLACER_H_
