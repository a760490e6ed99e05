// The clients' tables of dtypes. Promotion and classes are evaluated here, so that clients look up
// what compiler/ops/promote.h says and have no rules of their own.
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/bindings/opgen_tables.h"
#include "compiler/ops/op_def.h"
#include "compiler/ops/promote.h"

namespace kiln::ops {
namespace {

using ir::DType;

constexpr std::string_view kPythonBegin =
    R"module("""The dtypes. Generated from compiler/ir/dtype_table.h by opgen; do not edit."""

# ruff: noqa: E501
from typing import Dict, Optional, Tuple

from kiln._basics.dtype import DType, FloatFormat

)module";

constexpr std::string_view kPythonClasses = R"module(
# The classes of the table of ops.
CLASSES: Dict[str, Tuple[DType, ...]] = {
)module";

constexpr std::string_view kPythonPromoted = R"module(}

# To what a dtype and each of ALL promote, and None where no dtype holds both.
PROMOTED: Dict[DType, Tuple[Optional[DType], ...]] = {
)module";

constexpr std::string_view kDTypesHeaderBegin = R"(// Element types.
// Generated from compiler/ir/dtype_table.h by `opgen cpp_dtypes_header`; do not edit.
#ifndef KILN_CLIENTS_CPP_KILN_DTYPE_H_
#define KILN_CLIENTS_CPP_KILN_DTYPE_H_

// clang-format off
#include <cstdint>

namespace kiln {

// Element types; values equal kiln.v1.DType.
enum class DType : uint8_t {
  kUnspecified = 0,
)";

constexpr std::string_view kDTypesHeaderMiddle = R"(};
// Returns the bytes of one element; 0 for kUnspecified.
int SizeOf(DType dtype);

// The DType of a C++ type: kDTypeOf<float> is kFloat32. kUnspecified for types that have none.
template <typename T>
inline constexpr DType kDTypeOf = DType::kUnspecified;
)";

constexpr std::string_view kDTypesHeaderEnd = R"(
}  // namespace kiln
// clang-format on

#endif  // KILN_CLIENTS_CPP_KILN_DTYPE_H_
)";

constexpr std::string_view kDTypesSourceBegin = R"(// Sizes, kinds and promotion of dtypes.
// Generated from compiler/ir/dtype_table.h by `opgen cpp_dtypes_source`; do not edit.
// clang-format off
)";
constexpr std::string_view kDTypesSourceInclude = "#include \"clients/cpp/op_row.h\"\n";
constexpr std::string_view kDTypesRowsBegin = R"(
namespace kiln {
namespace {

constexpr DType kNone = DType::kUnspecified;

struct DTypeRow {
  int size;
  bool is_float;
  DType promoted[)";

constexpr std::string_view kDTypesSourceEnd = R"(};

const DTypeRow& RowOf(DType dtype) { return kDTypeRows[static_cast<int>(dtype)]; }

}  // namespace

int SizeOf(DType dtype) { return RowOf(dtype).size; }

namespace internal {

bool IsFloat(DType dtype) { return RowOf(dtype).is_float; }
DType Promote(DType a, DType b) { return RowOf(a).promoted[static_cast<int>(b)]; }

}  // namespace internal
}  // namespace kiln
// clang-format on
)";

// Returns kInvalid if no dtype holds both.
DType Promoted(DType a, DType b) {
  const auto promoted = Promote(a, b);
  return promoted.ok() ? *promoted : DType::kInvalid;
}

// A name in the client: `bool` is Python's own.
std::string PythonName(DType dtype) {
  if (dtype == DType::kInvalid) return "None";
  return StrCat(ir::Name(dtype), dtype == DType::kBool ? "_" : "");
}

std::string PythonTuple(const std::vector<DType>& dtypes) {
  return StrCat(
      "(",
      absl::StrJoin(dtypes, ", ", [](std::string* out, DType dtype) { *out += PythonName(dtype); }),
      dtypes.size() == 1 ? ",)" : ")");
}

std::string PythonObject(DType dtype) {
  const ir::DTypeRow& row = ir::RowOf(dtype);
  return StrCat(PythonName(dtype), " = DType(", Quoted(row.name), ", ", static_cast<int>(dtype),
                ", ", row.size, ", ",
                row.ml_dtypes_name.empty() ? Quoted(row.name) : std::string("None"), ")\n");
}

std::string PythonFormats() {
  std::string text = "\nFORMATS: Dict[DType, FloatFormat] = {\n";
  for (const DType dtype : ir::kAllDTypes) {
    if (!ir::IsFloat(dtype)) continue;
    const ir::FloatFormat& format = ir::FormatOf(dtype);
    StrAppend(&text, "    ", PythonName(dtype), ": FloatFormat(", format.mantissa_bits, ", ",
              format.exponent_bits, ", ", format.has_infinity ? "True" : "False", "),\n");
  }
  return text + "}\n";
}

// A dict from names elsewhere to dtypes; a dtype without a name is left out.
std::string PythonByName(std::string_view dict, std::string_view ir::DTypeRow::*name) {
  std::string text = StrCat(dict, ": Dict[str, DType] = {\n");
  for (const DType dtype : ir::kAllDTypes) {
    const std::string_view key = ir::RowOf(dtype).*name;
    if (!key.empty()) StrAppend(&text, "    ", Quoted(key), ": ", PythonName(dtype), ",\n");
  }
  return text + "}\n";
}

std::vector<DType> Members(DTypeClass dtype_class) {
  std::vector<DType> members;
  for (const DType dtype : ir::kAllDTypes) {
    if (Belongs(dtype, dtype_class)) members.push_back(dtype);
  }
  return members;
}

std::vector<DType> PromotedWithAll(DType dtype) {
  std::vector<DType> promoted;
  for (const DType other : ir::kAllDTypes) promoted.push_back(Promoted(dtype, other));
  return promoted;
}

// Returns the C++ type with the dtype's values; empty if there is none.
std::string CppTypeOf(DType dtype) {
  if (dtype == DType::kBool) return "bool";
  if (ir::IsInteger(dtype)) return StrCat(ir::Name(dtype), "_t");
  if (dtype == DType::kFloat32) return "float";
  return dtype == DType::kFloat64 ? "double" : "";
}

std::string CppConstant(DType dtype) {
  return dtype == DType::kInvalid ? "kNone" : StrCat("DType::", ir::RowOf(dtype).constant);
}

std::string CppRow(DType dtype) {
  std::vector<std::string> promoted = {"kNone"};
  for (const DType other : PromotedWithAll(dtype)) promoted.push_back(CppConstant(other));
  return StrCat("    {", ir::SizeOf(dtype), ", ", ir::IsFloat(dtype) ? "true" : "false", ", {",
                absl::StrJoin(promoted, ", "), "}},\n");
}

}  // namespace

std::string PythonDTypes() {
  std::string text(kPythonBegin);
  for (const DType dtype : ir::kAllDTypes) text += PythonObject(dtype);
  StrAppend(&text, "\nALL = ", PythonTuple(Members(DTypeClass::kAny)), "\n", PythonFormats(),
            "\n# The names in safetensors files.\n",
            PythonByName("SAFETENSORS", &ir::DTypeRow::safetensors_name),
            "\n# The names of ml_dtypes' NumPy dtypes, of the dtypes that NumPy itself lacks.\n",
            PythonByName("ML_DTYPES", &ir::DTypeRow::ml_dtypes_name), kPythonClasses);
  for (int i = 0; i <= static_cast<int>(DTypeClass::kUInt32); ++i) {
    const auto dtype_class = static_cast<DTypeClass>(i);
    StrAppend(&text, "    ", Quoted(Name(dtype_class)), ": ", PythonTuple(Members(dtype_class)),
              ",\n");
  }
  text += kPythonPromoted;
  for (const DType dtype : ir::kAllDTypes) {
    StrAppend(&text, "    ", PythonName(dtype), ": ", PythonTuple(PromotedWithAll(dtype)), ",\n");
  }
  // bool_ is kiln.bool.
  std::vector<std::string> names;
  for (const DType dtype : ir::kAllDTypes) {
    if (dtype != DType::kBool) names.push_back(Quoted(ir::Name(dtype)));
  }
  return StrCat(text, "}\n\n__all__ = [", absl::StrJoin(names, ", "), "]\n");
}

std::string CppDTypesHeader() {
  std::string text(kDTypesHeaderBegin);
  for (const DType dtype : ir::kAllDTypes) {
    StrAppend(&text, "  ", ir::RowOf(dtype).constant, " = ", static_cast<int>(dtype), ",\n");
  }
  text += kDTypesHeaderMiddle;
  for (const DType dtype : ir::kAllDTypes) {
    const std::string type = CppTypeOf(dtype);
    if (type.empty()) continue;
    StrAppend(&text, "template <> inline constexpr DType kDTypeOf<", type,
              "> = ", CppConstant(dtype), ";\n");
  }
  return StrCat(text, kDTypesHeaderEnd);
}

std::string CppDTypesSource() {
  std::string text =
      StrCat(kDTypesSourceBegin, kDTypesSourceInclude, kDTypesRowsBegin, ir::kNumDTypes,
             "];  // with each dtype, in the order of their numbers\n};\n"
             "constexpr DTypeRow kDTypeRows[] = {\n    {0, false, {}},\n");
  for (const DType dtype : ir::kAllDTypes) text += CppRow(dtype);
  return StrCat(text, kDTypesSourceEnd);
}

}  // namespace kiln::ops
