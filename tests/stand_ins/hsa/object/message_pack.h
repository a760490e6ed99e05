// The subset of MessagePack that code objects' metadata uses.
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECT_MESSAGE_PACK_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECT_MESSAGE_PACK_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::stand_ins::hsa {

struct PackedValue {
  using List = std::vector<PackedValue>;
  using Map = std::map<std::string, PackedValue>;
  std::variant<std::monostate, bool, int64_t, std::string, List, Map> value;

  // Empty, 0 or a list without members if the value has another type.
  std::string Text() const;
  int64_t Number() const;
  const List& Members() const;
  // For a map; an empty value if it has no such key.
  const PackedValue& At(const std::string& key) const;
};

// INVALID_ARGUMENT: it is truncated, or has types that metadata does not use (floats, keys that are
// not strings).
absl::StatusOr<PackedValue> ReadMessagePack(std::string_view bytes);

}  // namespace kiln::stand_ins::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECT_MESSAGE_PACK_H_
