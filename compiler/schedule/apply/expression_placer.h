// Translates the kernel's expressions to one place of the nest that is being built: ranges become
// loops, lanes and constants, loads get masks, locals get addresses.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_EXPRESSION_PLACER_H_
#define KILN_COMPILER_SCHEDULE_APPLY_EXPRESSION_PLACER_H_

#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

class ExpressionPlacer {
 public:
  // The arguments must outlive the placer. The program's first `kernel_buffers` buffers are the
  // kernel's.
  ExpressionPlacer(const Plan& plan, Nest& nest, kernel::ExpressionFolder& folder,
                   const LoopProgram& program, int kernel_buffers)
      : plan_(plan),
        nest_(nest),
        folder_(folder),
        program_(program),
        kernel_buffers_(kernel_buffers) {}

  // Returns the value of each range of the kernel.
  kernel::ExpressionFolder::Map RangeValues(const State& state) const;
  // `memo`: RangeValues, and other known values of this place; it grows as in
  // ExpressionFolder::Substitute. Returns null for null.
  const ir::Node* Place(const ir::Node* root, const State& state,
                        kernel::ExpressionFolder::Map* memo) const;
  // Adds the lane to the index: a local of a stage inside the grid's lanes has an element for each
  // lane.
  const ir::Node* LocalIndex(int buffer, const ir::Node* index, const State& state) const;

  // Returns whether an expression of the kernel depends on the axis, which no split made.
  bool DependsOnAxis(const ir::Node* root, int axis) const;
  // Returns the vector axis whose lanes are open, or -1.
  int OpenVectorAxis(const State& state) const;
  // Returns the condition that this point is within the unpadded extents, or null if it always is.
  // `load`: considers only axes on which this load of the kernel depends, by its index or its
  // condition; null: all axes.
  const ir::Node* PaddingMasks(const State& state, const ir::Node* load) const;
  // Returns which lanes are real, or null if all are. `reduce_only`: considers only lanes along a
  // reduction.
  const ir::Node* LaneMasks(const State& state, bool reduce_only) const;

 private:
  const ir::Node* Finish(const ir::Node* node, const State& state,
                         kernel::ExpressionFolder::Map* memo) const;
  // Adds to `memo`, with their masks, the loads that depend on padded axes.
  void MaskPadding(const ir::Node* root, const State& state,
                   kernel::ExpressionFolder::Map* memo) const;
  // Returns whether lanes past a ragged end may read the buffer, too: scratch buffers are padded to
  // whole cache lines.
  bool MayReadAnyLane(int buffer, const ir::Node* index) const;

  const Plan& plan_;
  Nest& nest_;
  kernel::ExpressionFolder& folder_;
  const LoopProgram& program_;
  const int kernel_buffers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_EXPRESSION_PLACER_H_
