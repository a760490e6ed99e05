// Finds the values that an inlined expression reads, and at which indices.
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
bool IsElementwise(const ir::Node* node);  // contiguous counts as movement
bool IsTranscendental(const ir::Node* node);
// Returns a value that is better stored than this one, because readers can compute this one from it
// at almost no cost; else null. For a short float cast to float32, which would take twice the
// memory, returns the short float. If matrix units use tf32, returns the operand of the last step
// of rounding to tf32, so that the kernels that read it still contain that step.
const ir::Node* LeftToReaders(const ir::Node* node, bool matrix_units);

// A stored value and the access to it.
struct Read {
  const ir::Node* leaf = nullptr;
  Access access;  // over the axes of the reading value
};

// Returns whether the value is always stored.
bool IsMaterialised(const ir::Node* node);

// Returns the points over which `node` is computed: the shape of a reduction's operand, of a
// scatter's values, else its own.
const ir::Shape& SpaceOf(const ir::Node* node);

// Returns how often each node is an operand of one in `order`, which is TopologicalOrder(roots).
// Roots count two additional uses, since they are used outside of the graph.
absl::flat_hash_map<const ir::Node*, int> CountUses(absl::Span<const ir::Node* const> order,
                                                    absl::Span<const ir::Node* const> roots);

// Returns all reads of the expression of `root`, whose axes are those of SpaceOf(root); `is_leaf`
// says where it ends (never at root itself). The tensor that a scatter overwrites counts as read.
// Each pair of leaf and access occurs once. `in_digits`: see MoveThrough.
std::vector<Read> FindReads(const ir::Node* root,
                            const std::function<bool(const ir::Node*)>& is_leaf,
                            bool in_digits = false);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_READS_H_
