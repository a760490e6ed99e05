// Labels that name classes by their numbers.
#ifndef KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_
#define KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_

#include <cstdint>

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Whether an integer dtype has this number.
bool CanBe(ir::DType dtype, int64_t value);

// Which class each label names: true where the label, at a new dimension `axis` of the result, is
// the class's number. Labels that name none of the `classes` are false everywhere.
const ir::Node* IsClass(Builder& b, const ir::Node* labels, int64_t classes, int64_t axis);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_CLASSES_H_
