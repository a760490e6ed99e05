// A tensor in host memory, as buffers hold it: row-major, little-endian, bool one byte an element.
#ifndef KILN_COMPILER_OPS_HOST_TENSOR_H_
#define KILN_COMPILER_OPS_HOST_TENSOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ops {

struct HostTensor {
  ir::DType dtype = ir::DType::kInvalid;
  ir::Shape shape;
  std::vector<uint8_t> bytes;

  static HostTensor Zeros(ir::DType dtype, ir::Shape shape);
  // `values` are rounded (floats) or cut (integers, bool) to the dtype.
  static HostTensor Of(ir::DType dtype, ir::Shape shape, absl::Span<const double> values);

  int64_t size() const { return ir::NumElements(shape); }

  // Element `i` in row-major order. Float and SetFloat are for float dtypes, Int and SetInt for
  // integers and bool; SetFloat rounds, SetInt wraps (see round.h).
  double Float(int64_t i) const;
  int64_t Int(int64_t i) const;
  void SetFloat(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);

  // Any dtype, as a double; integers beyond 2^53 lose their low bits.
  double Number(int64_t i) const;
};

// Steps, in elements, from one element to the next along each axis.
std::vector<int64_t> StridesOf(absl::Span<const int64_t> shape);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_HOST_TENSOR_H_
