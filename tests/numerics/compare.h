// Whether two tensors agree, and where they do not.
#ifndef KILN_TESTS_NUMERICS_COMPARE_H_
#define KILN_TESTS_NUMERICS_COMPARE_H_

#include <string>

#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Empty if shape and dtype are equal and all elements agree: integers and bool exactly; floats
// within absolute + relative * |expected|, NaN with NaN, an infinity with the same one. Else says
// how many differ, and the first.
std::string Difference(const ops::HostTensor& actual, const ops::HostTensor& expected,
                       double absolute, double relative);

// How far floats may be apart: in values of the dtype that lie between them, one more than there
// are. 0: the same value, which zeros of unlike sign are not if `signed_zeros`.
struct Closeness {
  int64_t ulps = 0;
  bool signed_zeros = true;
};

// As Difference, with floats that close.
std::string Difference(const ops::HostTensor& actual, const ops::HostTensor& expected,
                       Closeness closeness);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_COMPARE_H_
