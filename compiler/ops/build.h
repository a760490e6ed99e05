// Builds tensor-level nodes from a checked description of an op, as the wire has it.
#ifndef KILN_COMPILER_OPS_BUILD_H_
#define KILN_COMPILER_OPS_BUILD_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// `attributes` come from CompleteAttributes, `shape` and `dtype` from InferShape and InferDType.
// Checks the constraints, broadcasts and promotes, and makes the primitive or expands the
// composite. INVALID_ARGUMENT says what was wrong with the node; the caller adds which node it was.
absl::StatusOr<const ir::Node*> Build(Builder& builder, const OpDef& op,
                                      absl::Span<const ir::Node* const> operands,
                                      const Attributes& attributes, const ir::Shape& shape,
                                      ir::DType dtype);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BUILD_H_
