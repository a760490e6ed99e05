// Builds a node from a minimal description, for tests.
#ifndef KILN_COMPILER_OPS_TESTING_BUILD_OP_H_
#define KILN_COMPILER_OPS_TESTING_BUILD_OP_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Completes the attributes, infers shape and dtype and builds, as the wire's decoder does.
// `declared` is the wire's dtype field (kInvalid if absent).
absl::StatusOr<const ir::Node*> BuildOp(Builder& builder, const OpDef& op,
                                        absl::Span<const ir::Node* const> operands,
                                        const Attributes& attributes, ir::DType declared);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_TESTING_BUILD_OP_H_
