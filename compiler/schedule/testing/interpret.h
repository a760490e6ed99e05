// Runs loop programs on host memory, whole blocks of threads at once, and looks for what goes right
// in one order of the threads alone. Scalars behave as the table of ops says.
#ifndef KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_
#define KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// `program` was synchronized. `globals` holds one tensor for each argument, of its dtype and number
// of elements, in any shape.
//
// ABORTED names a race: an element that one thread writes and another one of the same block reads
// or writes with no barrier between the two, or of which two tasks know. INTERNAL: an access out of
// bounds, of a register at a place that is not constant, or of shared memory or registers that
// nobody wrote. Lanes run one after the other; UNIMPLEMENTED: what combines them.
absl::Status Interpret(const LoopProgram& program, absl::Span<ops::HostTensor* const> globals);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_
