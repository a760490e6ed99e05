#include "tests/stand_ins/cuda/ptx/type.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class Kind : uint8_t { kBits, kUnsigned, kSigned, kFloat };

struct TypeRow {
  absl::string_view name;
  Type type;
  int bytes;
  Kind kind;
  Type element;
};

// In the order of Type.
constexpr TypeRow kTypes[] = {
    {"pred", Type::kPred, 1, Kind::kBits, Type::kPred},
    {"b8", Type::kB8, 1, Kind::kBits, Type::kB8},
    {"b16", Type::kB16, 2, Kind::kBits, Type::kB16},
    {"b32", Type::kB32, 4, Kind::kBits, Type::kB32},
    {"b64", Type::kB64, 8, Kind::kBits, Type::kB64},
    {"u8", Type::kU8, 1, Kind::kUnsigned, Type::kU8},
    {"u16", Type::kU16, 2, Kind::kUnsigned, Type::kU16},
    {"u32", Type::kU32, 4, Kind::kUnsigned, Type::kU32},
    {"u64", Type::kU64, 8, Kind::kUnsigned, Type::kU64},
    {"s8", Type::kS8, 1, Kind::kSigned, Type::kS8},
    {"s16", Type::kS16, 2, Kind::kSigned, Type::kS16},
    {"s32", Type::kS32, 4, Kind::kSigned, Type::kS32},
    {"s64", Type::kS64, 8, Kind::kSigned, Type::kS64},
    {"f16", Type::kF16, 2, Kind::kFloat, Type::kF16},
    {"f16x2", Type::kF16x2, 4, Kind::kFloat, Type::kF16},
    {"bf16", Type::kBf16, 2, Kind::kFloat, Type::kBf16},
    {"bf16x2", Type::kBf16x2, 4, Kind::kFloat, Type::kBf16},
    {"tf32", Type::kTf32, 4, Kind::kFloat, Type::kTf32},
    {"f32", Type::kF32, 4, Kind::kFloat, Type::kF32},
    {"f32x2", Type::kF32x2, 8, Kind::kFloat, Type::kF32},
    {"f64", Type::kF64, 8, Kind::kFloat, Type::kF64},
    {"u16x2", Type::kU16x2, 4, Kind::kUnsigned, Type::kU16},
    {"s16x2", Type::kS16x2, 4, Kind::kSigned, Type::kS16},
};

const TypeRow& RowOf(Type type) { return kTypes[static_cast<int>(type)]; }

}  // namespace

std::optional<Type> TypeNamed(absl::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

std::optional<Space> SpaceNamed(absl::string_view name) {
  if (name == "global") return Space::kGlobal;
  if (name == "const") return Space::kConst;
  if (name == "shared" || name == "shared::cta") return Space::kShared;
  if (name == "local") return Space::kLocal;
  if (name == "param" || name == "param::entry" || name == "param::func") return Space::kParam;
  return std::nullopt;
}

int BytesOf(Type type) { return RowOf(type).bytes; }
bool IsSigned(Type type) { return RowOf(type).kind == Kind::kSigned; }
bool IsFloat(Type type) { return RowOf(type).kind == Kind::kFloat; }
bool IsPacked(Type type) { return RowOf(type).element != type; }
Type ElementOf(Type type) { return RowOf(type).element; }

}  // namespace kiln::stand_ins::ptx
