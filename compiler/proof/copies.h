// The loops that copy an operand into scratch, asked backwards: which of their iterations writes an
// element. A copy holds far more elements than the sampled points read, so it is never run.
#ifndef KILN_COMPILER_PROOF_COPIES_H_
#define KILN_COMPILER_PROOF_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::proof {

// A store, and the loops around it within the copy, outermost first.
struct CopyStore {
  const schedule::Store* store = nullptr;
  std::vector<const schedule::Loop*> loops;
  kernel::Sum index;
};

// The stores of consecutive statements that fill one buffer. False where they do more than that, or
// where an index is no sum of multiples of the loops' ranges and of what is constant around them.
bool FindCopyStores(absl::Span<const schedule::Statement* const> statements,
                    std::vector<CopyStore>* stores);

// Calls `visit` with the values of the loops at each iteration in which the store's index is
// `target`; all of them are within the ranges' own extents. Loops that the index does not depend on
// are at both their ends. `constant`: the index's value where all loops are at 0.
void ForEachSource(const CopyStore& store, int64_t target, int64_t constant,
                   absl::FunctionRef<void(absl::Span<const int64_t>)> visit);

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_COPIES_H_
