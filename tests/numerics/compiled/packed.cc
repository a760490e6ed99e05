#include "tests/numerics/compiled/packed.h"

#include <algorithm>
#include <limits>

namespace kiln::numerics {

ops::HostTensor Packed(const ops::HostTensor& value, const graph::Input& input) {
  constexpr int64_t kFar = 77;
  ops::HostTensor packed = ops::HostTensor::Zeros(input.dtype, input.shape);
  for (int64_t i = 0; i < packed.size(); ++i) {
    if (ir::IsFloat(input.dtype)) {
      packed.SetFloat(i, std::numeric_limits<double>::quiet_NaN());
    } else {
      packed.SetInt(i, i % 2 == 0 ? 1 + i : kFar + i);
    }
  }
  std::copy(value.bytes.begin(), value.bytes.end(), packed.bytes.begin());
  return packed;
}

}  // namespace kiln::numerics
