// The inputs on which kernels are compared.
#ifndef KILN_TESTS_FULL_SIZE_INPUTS_H_
#define KILN_TESTS_FULL_SIZE_INPUTS_H_

#include <cstdint>

#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// Returns the exclusive upper bound of random integers, so that most are in range if they are an
// index or a label: the number with which the kernel compares, or its longest loop.
int64_t IntegerBound(const kernel::Kernel& kernel);

struct InputKind {
  bool whole = true;
  bool positive = false;
  int64_t integer_bound = 2;
};
// Fills `elements` numbers: floats of a magnitude of 1 or 2, or between 1/2 and 2; integers in [0,
// integer_bound), within the range of the dtype.
void FillRandom(ir::DType dtype, int64_t elements, const InputKind& kind, uint64_t seed,
                void* data);

// Returns element `i`, in any dtype.
double ElementAt(ir::DType dtype, const void* data, int64_t i);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_INPUTS_H_
