// Writes integers and byte strings in the encodings of docs/formats/README.md, and reads them. All
// formats of Kiln's own, on disk and between its processes, are made of these.
#ifndef KILN_PROTO_CODING_CODING_H_
#define KILN_PROTO_CODING_CODING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kiln {

class ByteWriter {
 public:
  // 4 and 8 bytes, the lowest first.
  void Fixed32(uint32_t number);
  void Fixed64(uint64_t number);
  // LEB128: 7 bits per byte, the lowest first.
  void Number(uint64_t number);
  // A Number whose lowest bit is the sign, so that small numbers of either sign take few bytes.
  void Signed(int64_t number);
  // The bits of IEEE 754 as a Number.
  void Real(double number);
  // The count of bytes as a Number, then the bytes.
  void Text(std::string_view bytes);
  // The count of bytes as a Fixed64, then the bytes.
  void Field(std::string_view bytes);
  // A Field with the value's memory representation. A struct is only for a reader that is the same
  // executable.
  template <typename Plain>
  void PlainField(const Plain& value) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    Field({reinterpret_cast<const char*>(&value), sizeof value});
  }
  // The bytes alone.
  void Bytes(std::string_view bytes) { bytes_.append(bytes); }

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads untrusted bytes. After the first error, all results are 0 or empty.
class ByteReader {
 public:
  // Requires: `bytes` outlive the reader and the strings that it returns.
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint32_t Fixed32() { return static_cast<uint32_t>(Fixed(4)); }
  uint64_t Fixed64() { return Fixed(8); }
  uint64_t Number();
  int64_t Signed();
  double Real();
  std::string_view Text() { return Bytes(Number()); }
  std::string_view Field() { return Bytes(Fixed64()); }
  // A Field of another size is an error, and leaves the value as it is.
  template <typename Plain>
  void PlainField(Plain* value) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    const std::string_view bytes = Field();
    if (bytes.size() != sizeof *value) return Fail();
    std::memcpy(value, bytes.data(), sizeof *value);
  }
  // Fewer bytes than `count` are an error.
  std::string_view Bytes(uint64_t count);
  // Returns all remaining bytes.
  std::string_view Rest() { return std::exchange(rest_, {}); }
  // Returns the Number of items that follow. Each takes at least 1 byte, so a count above the
  // number of remaining bytes is an error.
  size_t Count();
  // Returns a Number below `size`. A larger one is an error, for which it returns 0.
  size_t Below(size_t size);
  void Fail() { ok_ = false, rest_ = {}; }

  bool ok() const { return ok_; }
  // True if all bytes have been read without an error.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  uint64_t Fixed(size_t bytes);

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace kiln

#endif  // KILN_PROTO_CODING_CODING_H_
