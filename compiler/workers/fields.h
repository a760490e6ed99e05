// A sequence of byte fields, each preceded by its size: the format of messages between processes of
// one executable, and of entries of the kernel cache.
#ifndef KILN_COMPILER_WORKERS_FIELDS_H_
#define KILN_COMPILER_WORKERS_FIELDS_H_

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln::workers {

void AppendField(std::string_view field, std::string* out);
// Moves the first field of `in` to `field`. Returns false if it is incomplete; safe for any bytes.
bool TakeField(std::string_view* in, std::string* field);

// The same for plain data, in its memory representation: only for a reader that is the same
// executable.
template <typename Plain>
void AppendPlain(const Plain& value, std::string* out) {
  static_assert(std::is_trivially_copyable_v<Plain>);
  AppendField({reinterpret_cast<const char*>(&value), sizeof value}, out);
}
template <typename Plain>
bool TakePlain(std::string_view* in, Plain* value) {
  static_assert(std::is_trivially_copyable_v<Plain>);
  std::string bytes;
  if (!TakeField(in, &bytes) || bytes.size() != sizeof *value) return false;
  std::memcpy(value, bytes.data(), sizeof *value);
  return true;
}

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_FIELDS_H_
