// Sizes, kinds and promotion of dtypes.
// Generated from compiler/ir/dtype_table.h by `opgen cpp_dtypes_source`; do not edit.
// clang-format off
#include "clients/cpp/op_row.h"

namespace kiln {
namespace {

constexpr DType kNone = DType::kUnspecified;

struct DTypeRow {
  int size;
  bool is_float;
  DType promoted[16];  // with each dtype, in the order of their numbers
};
constexpr DTypeRow kDTypeRows[] = {
    {0, false, {}},
    {1, false, {kNone, DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {1, false, {kNone, DType::kInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kInt16, DType::kInt32, DType::kInt64, kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {2, false, {kNone, DType::kInt16, DType::kInt16, DType::kInt16, DType::kInt32, DType::kInt64, DType::kInt16, DType::kInt32, DType::kInt64, kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {4, false, {kNone, DType::kInt32, DType::kInt32, DType::kInt32, DType::kInt32, DType::kInt64, DType::kInt32, DType::kInt32, DType::kInt64, kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {8, false, {kNone, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {1, false, {kNone, DType::kUInt8, DType::kInt16, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {2, false, {kNone, DType::kUInt16, DType::kInt32, DType::kInt32, DType::kInt32, DType::kInt64, DType::kUInt16, DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {4, false, {kNone, DType::kUInt32, DType::kInt64, DType::kInt64, DType::kInt64, DType::kInt64, DType::kUInt32, DType::kUInt32, DType::kUInt32, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {8, false, {kNone, DType::kUInt64, kNone, kNone, kNone, kNone, DType::kUInt64, DType::kUInt64, DType::kUInt64, DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat8E5M2}},
    {2, true, {kNone, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kFloat16}},
    {2, true, {kNone, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kBFloat16, DType::kFloat32, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kBFloat16}},
    {4, true, {kNone, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kFloat32, DType::kFloat32}},
    {8, true, {kNone, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64, DType::kFloat64}},
    {1, true, {kNone, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat8E4M3, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat8E4M3, DType::kFloat16}},
    {1, true, {kNone, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat8E5M2, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kFloat8E5M2}},
};

const DTypeRow& RowOf(DType dtype) { return kDTypeRows[static_cast<int>(dtype)]; }

}  // namespace

int SizeOf(DType dtype) { return RowOf(dtype).size; }

namespace internal {

bool IsFloat(DType dtype) { return RowOf(dtype).is_float; }
DType Promote(DType a, DType b) { return RowOf(a).promoted[static_cast<int>(b)]; }

}  // namespace internal
}  // namespace kiln
// clang-format on
