// What kernels are compared on.
#ifndef KILN_TESTS_FULL_SIZE_INPUTS_H_
#define KILN_TESTS_FULL_SIZE_INPUTS_H_

#include <cstdint>

#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// The number that integers are drawn below, so that most are in range where they are an index or a
// label: what the kernel compares numbers with, or its longest loop.
int64_t IntegerBound(const kernel::Kernel& kernel);

struct InputKind {
  bool whole = true;
  bool positive = false;
  int64_t integer_bound = 2;
};
// `elements` numbers: floats of a magnitude of 1 or 2, or between 1/2 and 2; integers in [0,
// integer_bound), as far as the dtype goes.
void FillRandom(ir::DType dtype, int64_t elements, const InputKind& kind, uint64_t seed,
                void* data);

// Element `i`, in any dtype.
double ElementAt(ir::DType dtype, const void* data, int64_t i);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_INPUTS_H_
