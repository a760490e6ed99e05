// Fields of bytes one behind the other, each with its size before it: what messages between
// processes of one executable, and entries of the kernel cache, are made of.
#ifndef KILN_COMPILER_WORKERS_FIELDS_H_
#define KILN_COMPILER_WORKERS_FIELDS_H_

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln::workers {

void AppendField(std::string_view field, std::string* out);
// Moves the first field of `in` to `field`. False if there is no whole one; any bytes are safe.
bool TakeField(std::string_view* in, std::string* field);

// The same for plain data, as it lies in memory: for a reader that is the same executable.
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
