// The spec of legal nodes: one table row per op with its levels, its operands, its attribute, its
// dtypes and the law of its shape. Verified after every pass, so that a defect shows in the pass
// that makes it.
#ifndef KILN_COMPILER_IR_SPEC_H_
#define KILN_COMPILER_IR_SPEC_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

enum class Level : uint8_t {
  kTensor,  // operations on whole tensors
  kKernel,  // scalar expressions over loop ranges; every shape is empty
};

// Returns OK, or INTERNAL with a message that holds the node's text, its operands' types and the
// law it breaks. Checks only the node, not its operands.
absl::Status VerifyNode(Level level, const Node* node);

// Runs VerifyNode for everything reachable from `roots` (null ones are skipped). Linear in nodes.
absl::Status Verify(Level level, absl::Span<const Node* const> roots);

// Returns the number of elements of a shape; nothing when a size is negative or the product does
// not fit in int64. The sizes other than zero must fit even if one size is zero.
std::optional<int64_t> CheckedNumElements(absl::Span<const int64_t> shape);

// Returns whether these are a kShard's integers for a value of `rank`: for each dimension a count,
// then as many axes of a mesh; each axis once.
bool IsSpec(absl::Span<const int64_t> values, size_t rank);

// Returns whether the value is in the dtype's range in its canonical form: bool 0 or 1, integers
// sign- or zero-extended to 64 bits. Every double is valid for a float dtype.
bool FitsDType(ConstValue value, DType dtype);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_SPEC_H_
