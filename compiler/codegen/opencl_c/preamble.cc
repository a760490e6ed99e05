#include "compiler/codegen/opencl_c/preamble.h"

#include <iterator>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/ir/str_cat.h"

namespace kiln::codegen {
namespace {

using ir::DType;

// The dtypes that a row applies to.
enum class Takes { kSigned, kUnsigned, kInteger, kFloat, kOne };

struct FunctionRow {
  std::string_view stem;
  Takes takes;
  DType dtype;            // kOne: this one
  std::string_view text;  // $T, $U: its type, and the unsigned one that it is computed in; $N: its
                          // name; $B: its bits
  std::string_view callee = "";
  DType callee_dtype = DType::kInvalid;
};

// Meanings are those of compiler/ops. Callees come before their callers.
constexpr FunctionRow kFunctions[] = {
    {"floor_div", Takes::kSigned, {}, R"(
$T floor_div_$N($T a, $T b) {
  if (b == 0) return 0;
  if (b == -1) return ($T)-($U)a;
  const $T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
    {"floor_div", Takes::kUnsigned, {}, R"(
$T floor_div_$N($T a, $T b) { return b == 0 ? 0 : a / b; }
)"},
    {"mod", Takes::kSigned, {}, R"(
$T mod_$N($T a, $T b) {
  if (b == 0 || b == -1) return 0;
  const $T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"mod", Takes::kUnsigned, {}, R"(
$T mod_$N($T a, $T b) { return b == 0 ? 0 : a % b; }
)"},
    {"mod", Takes::kFloat, {}, R"(
$T mod_$N($T x, $T y) {
  const $T rest = fmod(x, y);
  if (rest == 0) return copysign(rest, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}
)"},
    {"shl", Takes::kSigned, {}, R"(
$T shl_$N($T a, $T b) { return ($U)b < $B ? ($T)(($U)a << b) : 0; }
)"},
    {"shl", Takes::kUnsigned, {}, R"(
$T shl_$N($T a, $T b) { return b < $B ? ($T)(($U)a << b) : 0; }
)"},
    // Only the sign of a signed number remains.
    {"shr", Takes::kSigned, {}, R"(
$T shr_$N($T a, $T b) { return a >> (($U)b < $B ? b : $B - 1); }
)"},
    {"shr", Takes::kUnsigned, {}, R"(
$T shr_$N($T a, $T b) { return b < $B ? a >> b : 0; }
)"},
    // Saturates. In OpenCL C the result for NaN depends on the device.
    {"from_float32", Takes::kInteger, {}, R"(
$T from_float32_$N(float x) { return isnan(x) ? 0 : convert_$T_sat(x); }
)"},
    {"from_float64", Takes::kInteger, {}, R"(
$T from_float64_$N(double x) { return isnan(x) ? 0 : convert_$T_sat(x); }
)"},
    {"pow", Takes::kSigned, {}, R"(
$T pow_$N($T a, $T b) {
  if (b < 0) {
    if (a != 1 && a != -1) return 0;
    b &= 1;
  }
  $U product = 1, square = a;
  for ($U rest = b; rest != 0; rest >>= 1) {
    if (rest & 1) product *= square;
    square *= square;
  }
  return ($T)product;
}
)"},
    {"pow", Takes::kUnsigned, {}, R"(
$T pow_$N($T a, $T b) {
  $U product = 1, square = a;
  for ($U rest = b; rest != 0; rest >>= 1) {
    if (rest & 1) product *= square;
    square *= square;
  }
  return ($T)product;
}
)"},
    // NaN if either operand is NaN.
    {"max", Takes::kFloat, {}, R"(
$T max_$N($T x, $T y) { return isnan(x) || x > y ? x : y; }
)"},
    {"min", Takes::kFloat, {}, R"(
$T min_$N($T x, $T y) { return isnan(x) || x < y ? x : y; }
)"},

    // Round to odd: of the two floats around an inexact number, returns the one whose last bit is
    // 1. Rounding that to fewer bits gives the same result as rounding the number (Boldo and
    // Melquiond 2008).
    {"to_odd_float", Takes::kOne, DType::kFloat64, R"(
float to_odd_float_float64(double x) {
  const float nearest = (float)x;
  const double back = nearest;
  if (back == x || isnan(x)) return nearest;
  return as_float((as_uint(nearest) - (fabs(back) > fabs(x))) | 1);
}
)"},
    {"to_odd_float", Takes::kOne, DType::kUInt64, R"(
float to_odd_float_uint64(ulong x) {
  const int dropped = 40 - (int)clz(x);
  if (dropped <= 0) return (float)x;
  const ulong kept = x >> dropped | (x << (64 - dropped) != 0);
  return (float)kept * (float)(1ul << dropped);
}
)"},
    {"to_odd_float", Takes::kOne, DType::kInt64, R"(
float to_odd_float_int64(long x) {
  return x < 0 ? -to_odd_float_uint64(-(ulong)x) : to_odd_float_uint64(x);
}
)",
     "to_odd_float", DType::kUInt64},

    {"from", Takes::kOne, DType::kFloat16, R"(
float from_float16(float16_bits x) { return vload_half(0, (const __private half*)&x); }
)"},
    {"to", Takes::kOne, DType::kFloat16, R"(
float16_bits to_float16(float x) {
  float16_bits bits;
  vstore_half_rte(x, 0, (__private half*)&bits);
  return bits;
}
)"},
    {"from", Takes::kOne, DType::kBFloat16, R"(
float from_bfloat16(bfloat16_bits x) { return as_float((uint)x << 16); }
)"},
    {"to", Takes::kOne, DType::kBFloat16, R"(
bfloat16_bits to_bfloat16(float x) {
  const uint bits = as_uint(x);
  if (isnan(x)) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
)"},
    // Placed where float16 has exponent and mantissa, it is a number that is too small by 2^8.
    {"from", Takes::kOne, DType::kFloat8E4M3, R"(
float from_float8_e4m3(float8_e4m3_bits x) {
  if ((x & 0x7f) == 0x7f) return NAN;
  return from_float16((x & 0x80) << 8 | (x & 0x7f) << 7) * 256.0f;
}
)",
     "from", DType::kFloat16},
    // The upper half of a float16.
    {"from", Takes::kOne, DType::kFloat8E5M2, R"(
float from_float8_e5m2(float8_e5m2_bits x) { return from_float16((float16_bits)(x << 8)); }
)",
     "from", DType::kFloat16},
    // To nearest, ties to even. An addition moves the last place of denormal results to float's,
    // which rounds them. There is no infinity: larger numbers become NaN.
    {"to", Takes::kOne, DType::kFloat8E4M3, R"(
float8_e4m3_bits to_float8_e4m3(float x) {
  const uint size = as_uint(x) & 0x7fffffff;
  uint bits = 0x7f;
  if (size < as_uint(0x1p-6f)) {
    bits = as_uint(as_float(size) + 0x1p14f) - as_uint(0x1p14f);
  } else if (!isnan(x)) {
    bits = min(((size + 0x7ffff + (size >> 20 & 1)) >> 20) - (120u << 3), 0x7fu);
  }
  return bits | as_uint(x) >> 31 << 7;
}
)"},
    {"to", Takes::kOne, DType::kFloat8E5M2, R"(
float8_e5m2_bits to_float8_e5m2(float x) {
  const uint size = as_uint(x) & 0x7fffffff;
  uint bits = 0x7e;
  if (size < as_uint(0x1p-14f)) {
    bits = as_uint(as_float(size) + 0x1p7f) - as_uint(0x1p7f);
  } else if (!isnan(x)) {
    bits = min(((size + 0xfffff + (size >> 21 & 1)) >> 21) - (112u << 2), 0x7cu);
  }
  return bits | as_uint(x) >> 31 << 7;
}
)"},
};

bool Matches(const FunctionRow& row, DType dtype) {
  switch (row.takes) {
    case Takes::kOne:
      return row.dtype == dtype;
    case Takes::kFloat:
      return ir::IsFloat(dtype);
    case Takes::kInteger:
      return ir::IsInteger(dtype);
    case Takes::kSigned:
      return ir::IsInteger(dtype) && ir::IsSigned(dtype);
    case Takes::kUnsigned:
      return ir::IsInteger(dtype) && !ir::IsSigned(dtype);
  }
  return false;
}

// Returns the type that holds a short float's bits; empty for other dtypes.
std::string_view BitsType(DType dtype) {
  if (!ir::IsShortFloat(dtype)) return "";
  return ir::SizeOf(dtype) == 2 ? "ushort" : "uchar";
}

std::string_view TypeName(DType dtype) { return ir::RowOf(dtype).opencl_name; }

}  // namespace

std::string_view Preamble::Type(DType dtype) {
  types_.insert(dtype);
  return TypeName(dtype);
}

std::string_view Preamble::MemoryType(DType dtype) {
  return dtype == DType::kBool ? "uchar" : Type(dtype);
}

std::string Preamble::Function(std::string_view stem, DType dtype) {
  for (size_t i = 0; i < std::size(kFunctions); ++i) {
    const FunctionRow& row = kFunctions[i];
    if (row.stem != stem || !Matches(row, dtype)) continue;
    Type(dtype);
    functions_.emplace(i, dtype);
    if (!row.callee.empty()) Function(row.callee, row.callee_dtype);
  }
  return StrCat(stem, "_", ir::Name(dtype));
}

std::string Preamble::Text() const {
  std::string text = "#pragma OPENCL FP_CONTRACT OFF\n";
  if (types_.contains(DType::kFloat64)) {
    StrAppend(&text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
  }
  for (const DType dtype : types_) {
    if (BitsType(dtype).empty()) continue;
    StrAppend(&text, "typedef ", BitsType(dtype), " ", TypeName(dtype), ";\n");
  }
  for (const auto& [row, dtype] : functions_) {
    // C computes types below 32 bits in int, whose overflow is undefined.
    const std::vector<std::pair<std::string, std::string>> words = {
        {"$T", std::string(TypeName(dtype))},
        {"$U", ir::SizeOf(dtype) == 8 ? "ulong" : "uint"},
        {"$N", std::string(ir::Name(dtype))},
        {"$B", absl::StrCat(8 * ir::SizeOf(dtype))}};
    text += absl::StrReplaceAll(std::string(kFunctions[row].text), words);
  }
  return text + "\n";
}

}  // namespace kiln::codegen
