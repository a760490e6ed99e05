// The values on which primitives are tested, and the required accuracy of their results.
#ifndef KILN_TESTS_NUMERICS_CASES_PRIMITIVE_VALUES_H_
#define KILN_TESTS_NUMERICS_CASES_PRIMITIVE_VALUES_H_

#include <vector>

#include "compiler/ops/host_tensor.h"
#include "compiler/ops/op_def.h"
#include "tests/numerics/compare.h"

namespace kiln::numerics {

std::vector<ir::DType> AllDTypes();

// The number of random values in addition to the exhaustive ones; prime, so that no vector width
// divides it.
inline constexpr int64_t kManyValues = 4099;

// Returns the values of one operand, or of two whose pairs are tested: tensors of one dimension.
// All values of one-byte and two-byte dtypes occur (of one-byte dtypes all pairs); of wider ones
// the special values and random bits.
std::vector<ops::HostTensor> Values(ir::DType dtype, int operands);

// Returns how close the compiled op must be to the interpreter. The interpreter's own error is half
// a unit in the last place of the dtype, in addition to a double's.
Closeness ClosenessOf(const ops::OpDef& op, ir::DType dtype);

// Returns true if the op accepts operands of the dtype; a condition is bool in any case.
bool Admits(const ops::OpDef& op, ir::DType dtype);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASES_PRIMITIVE_VALUES_H_
