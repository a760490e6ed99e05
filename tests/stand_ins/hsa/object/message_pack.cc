#include "tests/stand_ins/hsa/object/message_pack.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kiln::stand_ins::hsa {
namespace {

// More than metadata has; a damaged file must not exhaust the stack.
constexpr int kLevelsMax = 16;

class PackReader {
 public:
  explicit PackReader(std::string_view bytes) : bytes_(bytes) {}

  bool Read(PackedValue* out, int level) {
    uint64_t first = 0;
    if (level > kLevelsMax || !Integer(1, &first)) return false;
    const auto code = static_cast<uint8_t>(first);
    if (code <= 0x7f) return Set(out, int64_t{code});
    if (code >= 0xe0) return Set(out, int64_t{static_cast<int8_t>(code)});
    if (code <= 0x8f) return ReadMap(out, code & 0xf, level);
    if (code <= 0x9f) return ReadList(out, code & 0xf, level);
    if (code <= 0xbf) return ReadText(out, code & 0x1f);
    uint64_t size = 0;
    switch (code) {
      case 0xc0:
        return true;
      case 0xc2:
      case 0xc3:
        return Set(out, code == 0xc3);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return Integer(1 << (code - 0xcc), &size) && Set(out, static_cast<int64_t>(size));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return Integer(1 << (code - 0xd9), &size) && ReadText(out, size);
      case 0xdc:
      case 0xdd:
        return Integer(2 << (code - 0xdc), &size) && ReadList(out, size, level);
      case 0xde:
      case 0xdf:
        return Integer(2 << (code - 0xde), &size) && ReadMap(out, size, level);
      default:
        return false;
    }
  }

 private:
  template <typename Value>
  static bool Set(PackedValue* out, Value value) {
    out->value = value;
    return true;
  }
  // An integer of this many bytes, big-endian.
  bool Integer(size_t bytes, uint64_t* value) {
    if (bytes_.size() < bytes) return false;
    *value = 0;
    for (size_t i = 0; i < bytes; ++i) *value = *value << 8 | static_cast<uint8_t>(bytes_[i]);
    bytes_.remove_prefix(bytes);
    return true;
  }
  bool ReadText(PackedValue* out, uint64_t size) {
    if (bytes_.size() < size) return false;
    out->value = std::string(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return true;
  }
  bool ReadList(PackedValue* out, uint64_t size, int level) {
    if (bytes_.size() < size) return false;
    PackedValue::List list(size);
    for (PackedValue& member : list) {
      if (!Read(&member, level + 1)) return false;
    }
    out->value = std::move(list);
    return true;
  }
  bool ReadMap(PackedValue* out, uint64_t size, int level) {
    PackedValue::Map map;
    for (uint64_t i = 0; i < size; ++i) {
      PackedValue key;
      if (!Read(&key, level + 1) || !std::holds_alternative<std::string>(key.value)) return false;
      if (!Read(&map[key.Text()], level + 1)) return false;
    }
    out->value = std::move(map);
    return true;
  }

  std::string_view bytes_;
};

}  // namespace

std::string PackedValue::Text() const {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

int64_t PackedValue::Number() const {
  const auto* number = std::get_if<int64_t>(&value);
  return number == nullptr ? 0 : *number;
}

const PackedValue::List& PackedValue::Members() const {
  static const List* const kNone = new List;
  const auto* list = std::get_if<List>(&value);
  return list == nullptr ? *kNone : *list;
}

const PackedValue& PackedValue::At(const std::string& key) const {
  static const PackedValue* const kNone = new PackedValue;
  const auto* map = std::get_if<Map>(&value);
  if (map == nullptr) return *kNone;
  const auto found = map->find(key);
  return found == map->end() ? *kNone : found->second;
}

absl::StatusOr<PackedValue> ReadMessagePack(std::string_view bytes) {
  PackedValue value;
  if (PackReader(bytes).Read(&value, 0)) return value;
  return absl::InvalidArgumentError("the metadata is no MessagePack");
}

}  // namespace kiln::stand_ins::hsa
