// Compares two tensors.
#ifndef KILN_TESTS_NUMERICS_COMPARE_H_
#define KILN_TESTS_NUMERICS_COMPARE_H_

#include <string>

#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Returns an empty text if shape and dtype are equal and all elements agree: integers and bool
// exactly; floats within absolute + relative * |expected|, NaN with NaN, an infinity with the same
// one. Otherwise returns how many differ, and the first difference.
std::string Difference(const ops::HostTensor& actual, const ops::HostTensor& expected,
                       double absolute, double relative);

// The allowed distance of floats, as the number of values of the dtype between them plus one. 0:
// the same value; with `signed_zeros`, zeros of different sign are not the same.
struct Closeness {
  int64_t ulps = 0;
  bool signed_zeros = true;
};

// As the other Difference, with floats within `closeness`.
std::string Difference(const ops::HostTensor& actual, const ops::HostTensor& expected,
                       Closeness closeness);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_COMPARE_H_
