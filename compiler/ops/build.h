// From a checked description of an op, as the wire has it, to tensor-level nodes.
#ifndef KILN_COMPILER_OPS_BUILD_H_
#define KILN_COMPILER_OPS_BUILD_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Does everything the wire's decoder needs for one node: completes and checks the attributes,
// counts the operands, infers shape and dtype; then checks the constraints, broadcasts and
// promotes, makes the primitive or expands the composite. `declared` is the wire's dtype field
// (kInvalid if it is absent). INVALID_ARGUMENT says what was wrong with the node; the caller adds
// which node it was.
absl::StatusOr<const ir::Node*> Build(Builder& builder, const OpDef& op,
                                      absl::Span<const ir::Node* const> operands,
                                      const Attributes& attributes, ir::DType declared);

// What Build does after that, for a caller that has done it: `attributes` are complete, `shape` and
// `dtype` are what InferShape and InferDType gave.
absl::StatusOr<const ir::Node*> BuildInferred(Builder& builder, const OpDef& op,
                                              absl::Span<const ir::Node* const> operands,
                                              const Attributes& attributes, const ir::Shape& shape,
                                              ir::DType dtype);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BUILD_H_
