// The parts of a loop of kind kMatrix: for each of 2 row halves, 2 columns and some terms, sum +=
// row factor * column factor, in registers. plan.h says what each thread has.
#ifndef KILN_COMPILER_SCHEDULE_MATRIX_STEP_H_
#define KILN_COMPILER_SCHEDULE_MATRIX_STEP_H_

#include <optional>

#include "compiler/ir/node.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

struct MatrixStep {
  // The ranges of the three loops.
  const ir::Node* rows = nullptr;
  const ir::Node* columns = nullptr;
  const ir::Node* terms = nullptr;
  int sums = 0;                           // the buffer, in registers
  const ir::Node* index = nullptr;        // into `sums`
  const ir::Node* factor[2] = {};         // loads from shared memory: for rows, for columns
  ir::DType dtype = ir::DType::kInvalid;  // of both factors' elements
};

// Returns nullopt if the loop, of kind kUnrolled or kMatrix, does not have this form.
std::optional<MatrixStep> FindMatrixStep(const Loop& loop, const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_MATRIX_STEP_H_
