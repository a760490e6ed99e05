// A tensor in host memory, in the format of buffers: row-major, little-endian, one byte per bool.
#ifndef KILN_COMPILER_OPS_HOST_TENSOR_H_
#define KILN_COMPILER_OPS_HOST_TENSOR_H_

#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "proto/check/check.h"

namespace kiln::ops {

struct HostTensor {
  ir::DType dtype = ir::DType::kInvalid;
  ir::Shape shape;
  std::vector<uint8_t> bytes;

  static HostTensor Zeros(ir::DType dtype, ir::Shape shape);
  // Rounds `values` (for floats) or truncates them (for integers, bool) to the dtype.
  static HostTensor Of(ir::DType dtype, ir::Shape shape, absl::Span<const double> values);

  int64_t size() const { return ir::NumElements(shape); }

  // Accesses element `i` in row-major order. Float and SetFloat are for float dtypes, Int and
  // SetInt for integers and bool; SetFloat rounds, SetInt wraps (see round.h).
  double Float(int64_t i) const;
  int64_t Int(int64_t i) const;
  void SetFloat(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);

  // Returns an element of any dtype as a double; integers beyond 2^53 lose their low bits.
  double Number(int64_t i) const;

 private:
  template <typename T>
  T Load(int64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + static_cast<int64_t>(sizeof(T)) * i, sizeof(T));
    return value;
  }
  template <typename T, typename Wide>
  void Store(int64_t i, Wide wide) {
    const auto value = static_cast<T>(wide);
    std::memcpy(bytes.data() + static_cast<int64_t>(sizeof(T)) * i, &value, sizeof(T));
  }
  double ShortFloat(int64_t i) const;
  void SetShortFloat(int64_t i, double value);
};

// Inline, since interpreters spend their time here.
inline double HostTensor::Float(int64_t i) const {
  if (dtype == ir::DType::kFloat32) return Load<float>(i);
  if (dtype == ir::DType::kFloat64) return Load<double>(i);
  return ShortFloat(i);
}

inline void HostTensor::SetFloat(int64_t i, double value) {
  if (dtype == ir::DType::kFloat32) return Store<float>(i, value);
  if (dtype == ir::DType::kFloat64) return Store<double>(i, value);
  SetShortFloat(i, value);
}

inline int64_t HostTensor::Int(int64_t i) const {
  switch (dtype) {
    case ir::DType::kBool:
      return bytes[i] != 0;
    case ir::DType::kInt8:
      return Load<int8_t>(i);
    case ir::DType::kInt16:
      return Load<int16_t>(i);
    case ir::DType::kInt32:
      return Load<int32_t>(i);
    case ir::DType::kUInt8:
      return Load<uint8_t>(i);
    case ir::DType::kUInt16:
      return Load<uint16_t>(i);
    case ir::DType::kUInt32:
      return Load<uint32_t>(i);
    case ir::DType::kInt64:
    case ir::DType::kUInt64:
      return Load<int64_t>(i);
    default:
      KILN_CHECK(false) << "no integer dtype: " << static_cast<int>(dtype);
      return 0;
  }
}

inline void HostTensor::SetInt(int64_t i, int64_t value) {
  switch (dtype) {
    case ir::DType::kBool:
      return Store<uint8_t>(i, value != 0);
    case ir::DType::kInt8:
    case ir::DType::kUInt8:
      return Store<uint8_t>(i, value);
    case ir::DType::kInt16:
    case ir::DType::kUInt16:
      return Store<uint16_t>(i, value);
    case ir::DType::kInt32:
    case ir::DType::kUInt32:
      return Store<uint32_t>(i, value);
    case ir::DType::kInt64:
    case ir::DType::kUInt64:
      return Store<int64_t>(i, value);
    default:
      KILN_CHECK(false) << "no integer dtype: " << static_cast<int>(dtype);
  }
}

// Copies the bits of an element. Requires: both tensors have the same dtype.
inline void CopyElement(const HostTensor& from, int64_t i, HostTensor& to, int64_t j) {
  switch (ir::SizeOf(from.dtype)) {
    case 1:
      to.bytes[j] = from.bytes[i];
      break;
    case 2:
      std::memcpy(&to.bytes[2 * j], &from.bytes[2 * i], 2);
      break;
    case 4:
      std::memcpy(&to.bytes[4 * j], &from.bytes[4 * i], 4);
      break;
    default:
      std::memcpy(&to.bytes[8 * j], &from.bytes[8 * i], 8);
  }
}

// Returns the distance, in elements, from one element to the next along each axis.
std::vector<int64_t> StridesOf(absl::Span<const int64_t> shape);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_HOST_TENSOR_H_
