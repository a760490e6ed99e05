// What an inlined expression reads, and where.
#ifndef KILN_COMPILER_PARTITION_READS_H_
#define KILN_COMPILER_PARTITION_READS_H_

#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/partition/digits.h"

namespace kiln::partition {

bool IsReduction(const ir::Node* node);
bool IsScatter(const ir::Node* node);
bool IsMovement(const ir::Node* node);     // identities included
bool IsElementwise(const ir::Node* node);  // computes; contiguous is movement
bool IsTranscendental(const ir::Node* node);
// What is better stored than this value, since to make this of it costs readers nothing worth
// storing: of a short float made float32, which would take twice the memory, the short float; where
// matrix units take tf32, what the last step of rounding to it masks, so that the kernels that read
// it show what they round. Else null.
const ir::Node* LeftToReaders(const ir::Node* node, bool matrix_units);

// A stored value and the place at which it is read.
struct Read {
  const ir::Node* leaf = nullptr;
  Access access;  // over the axes of the value that reads
};

// Whether the value is in memory wherever it is used.
bool IsMaterialised(const ir::Node* node);

// The points over which `node` is computed: a reduction's operand's shape, a scatter's values',
// else its own.
const ir::Shape& SpaceOf(const ir::Node* node);

// How often each node is an operand of one in `order`, which is TopologicalOrder(roots). Roots
// count twice more: what leaves the graph is used by more than its readers here.
absl::flat_hash_map<const ir::Node*, int> CountUses(absl::Span<const ir::Node* const> order,
                                                    absl::Span<const ir::Node* const> roots);

// All reads of the expression of `root`, whose axes are those of SpaceOf(root); `is_leaf` says
// where it ends (never at root itself). What a scatter writes over counts as read. Each pair of
// leaf and access once. `in_digits`: see MoveThrough.
std::vector<Read> FindReads(const ir::Node* root,
                            const std::function<bool(const ir::Node*)>& is_leaf,
                            bool in_digits = false);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_READS_H_
