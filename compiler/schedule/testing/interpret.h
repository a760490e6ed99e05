// Runs loop programs on host memory, whole blocks of threads at once, and finds results that depend
// on the order of the threads. Scalars follow the table of ops.
#ifndef KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_
#define KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Requires: `program` is synchronized. `globals` holds one tensor for each argument, of its dtype
// and number of elements, in any shape.
//
// Returns ABORTED for a race: an element that one thread writes and another one of the same block
// reads or writes without a barrier between the two, or that is accessed this way by two tasks.
// Returns INTERNAL for an access out of bounds, to a register at an index that is not constant, or
// to shared memory or registers that no thread wrote. Lanes run one after another; operations that
// combine them are UNIMPLEMENTED.
absl::Status Interpret(const LoopProgram& program, absl::Span<ops::HostTensor* const> globals);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_TESTING_INTERPRET_H_
