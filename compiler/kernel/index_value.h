// The value of an index expression, or of a condition on indices, at one point.
#ifndef KILN_COMPILER_KERNEL_INDEX_VALUE_H_
#define KILN_COMPILER_KERNEL_INDEX_VALUE_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"

namespace kiln::kernel {

// The values of ranges.
using IndexPoint = absl::flat_hash_map<const ir::Node*, int64_t>;

// Returns nothing if the node depends on more than the ranges of `point`, or has operations that
// indices rarely have.
std::optional<int64_t> ValueAt(const ir::Node* node, const IndexPoint& point);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_VALUE_H_
