// The types and state spaces of PTX instructions.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_TYPE_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace kiln::stand_ins::ptx {

enum class Type : uint8_t {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kU16x2,
  kS16x2,
};

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

// Look up a name in PTX, without the dot.
std::optional<Type> TypeNamed(absl::string_view name);
std::optional<Space> SpaceNamed(absl::string_view name);

int BytesOf(Type type);
bool IsSigned(Type type);
bool IsFloat(Type type);
// Two values in one register.
bool IsPacked(Type type);
// The type of each value of a packed type; for other types the type itself.
Type ElementOf(Type type);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_TYPE_H_
