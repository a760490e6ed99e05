// The loops that copy an operand into scratch, solved backwards: which iteration writes a given
// element. A copy has far more elements than the sampled points read, so it is never executed.
#ifndef KILN_COMPILER_PROOF_COPIES_H_
#define KILN_COMPILER_PROOF_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::proof {

// A store and its loops within the copy, outermost first.
struct CopyStore {
  const schedule::Store* store = nullptr;
  std::vector<const schedule::Loop*> loops;
  kernel::Sum index;
};

// Finds the stores of consecutive statements that fill one buffer. Returns false if the statements
// do more than that, or if an index is not a sum of multiples of the loops' ranges and of terms
// that are constant in the loops.
bool FindCopyStores(absl::Span<const schedule::Statement* const> statements,
                    std::vector<CopyStore>* stores);

// Calls `visit` with the values of the loops for each iteration in which the store's index is
// `target`; the values are within the ranges' extents. Loops that the index does not depend on are
// visited at both ends. `constant` is the index's value with all loops at 0.
void ForEachSource(const CopyStore& store, int64_t target, int64_t constant,
                   absl::FunctionRef<void(absl::Span<const int64_t>)> visit);

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_COPIES_H_
