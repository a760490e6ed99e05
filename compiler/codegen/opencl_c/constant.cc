#include "compiler/codegen/opencl_c/constant.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/ops/round.h"

namespace kiln::codegen {
namespace {

using ir::DType;

// Returns the shortest digits that parse to the same number.
template <typename Float>
std::string Digits(Float value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  std::string digits(text, end);
  // Without a point, C would read an integer.
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

std::string BitsText(double value, DType dtype) {
  // Host tensors implement the encoding, and round like all other code.
  const auto held = ops::HostTensor::Of(dtype, {}, {value});
  uint64_t bits = 0;
  std::memcpy(&bits, held.bytes.data(), held.bytes.size());
  return absl::StrFormat("0x%0*x", 2 * ir::SizeOf(dtype), bits);
}

std::string IntegerText(int64_t bits, DType dtype) {
  const int64_t value = ops::WrapToInteger(dtype, bits);
  switch (dtype) {
    case DType::kInt32:
      if (value == std::numeric_limits<int32_t>::min()) return "INT_MIN";
      return absl::StrCat(value);
    case DType::kInt64:
      if (value == std::numeric_limits<int64_t>::min()) return "LONG_MIN";
      return absl::StrCat(value, "L");
    case DType::kUInt32:
      return absl::StrCat(value, "u");
    case DType::kUInt64:
      return absl::StrCat(static_cast<uint64_t>(value), "ul");
    default:
      return absl::StrCat(value);
  }
}

}  // namespace

std::string FloatText(double value, DType dtype) {
  if (ir::IsShortFloat(dtype)) return BitsText(value, dtype);
  if (std::isfinite(value)) {
    return dtype == DType::kFloat64 ? Digits(value) : Digits(static_cast<float>(value)) + "f";
  }
  // C's own constants are floats.
  const std::string type = dtype == DType::kFloat64 ? "(double)" : "";
  if (std::isnan(value)) return type + "NAN";
  return value < 0 ? "-" + type + "INFINITY" : type + "INFINITY";
}

std::string ConstantText(const ir::Node* node) {
  const auto& value = node->attr<ir::ConstValue>();
  if (ir::IsFloat(node->dtype())) return FloatText(value.AsDouble(), node->dtype());
  if (node->dtype() == DType::kBool) return value.AsInt() != 0 ? "true" : "false";
  return IntegerText(value.AsInt(), node->dtype());
}

}  // namespace kiln::codegen
