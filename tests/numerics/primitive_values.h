// With which values primitives are tested, and how exact their results must be.
#ifndef KILN_TESTS_NUMERICS_PRIMITIVE_VALUES_H_
#define KILN_TESTS_NUMERICS_PRIMITIVE_VALUES_H_

#include <vector>

#include "compiler/ops/host_tensor.h"
#include "compiler/ops/op_def.h"
#include "tests/numerics/compare.h"

namespace kiln::numerics {

std::vector<ir::DType> AllDTypes();

// Random values beside those in which all is tried; prime: no vector width divides it.
inline constexpr int64_t kManyValues = 4099;

// One operand, or two of which the pairs matter: tensors of one dimension. All values of dtypes of
// one and two bytes occur (of one byte all pairs), of wider ones the special ones and random bits.
std::vector<ops::HostTensor> Values(ir::DType dtype, int operands);

// How close the compiled op must come to the interpreter's. The interpreter's own error is half a
// place of the dtype, after a double's.
Closeness ClosenessOf(const ops::OpDef& op, ir::DType dtype);

// Whether the op takes operands of the dtype; a condition is bool all the same.
bool Admits(const ops::OpDef& op, ir::DType dtype);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_PRIMITIVE_VALUES_H_
