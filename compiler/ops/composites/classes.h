// Labels that give classes by number.
#ifndef KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_
#define KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_

#include <cstdint>

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Returns whether an integer dtype can hold this number.
bool CanBe(ir::DType dtype, int64_t value);

// Returns true where the label equals the class number, which is the index along a new dimension
// `axis` of the result. A label that is not one of the `classes` is false everywhere.
const ir::Node* IsClass(Builder& b, const ir::Node* labels, int64_t classes, int64_t axis);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_
