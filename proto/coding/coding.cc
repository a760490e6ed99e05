#include "proto/coding/coding.h"

namespace kiln {
namespace {

void AppendFixed(uint64_t number, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(number >> (8 * i)));
}

}  // namespace

void ByteWriter::Fixed32(uint32_t number) { AppendFixed(number, 4, &bytes_); }

void ByteWriter::Fixed64(uint64_t number) { AppendFixed(number, 8, &bytes_); }

void ByteWriter::Number(uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_.push_back(static_cast<char>(number | 128));
  bytes_.push_back(static_cast<char>(number));
}

void ByteWriter::Signed(int64_t number) {
  const auto bits = static_cast<uint64_t>(number);
  Number(number < 0 ? ~bits << 1 | 1 : bits << 1);
}

void ByteWriter::Real(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  Number(bits);
}

void ByteWriter::Text(std::string_view bytes) {
  Number(bytes.size());
  Bytes(bytes);
}

void ByteWriter::Field(std::string_view bytes) {
  Fixed64(bytes.size());
  Bytes(bytes);
}

uint64_t ByteReader::Fixed(size_t count) {
  const std::string_view bytes = Bytes(count);
  uint64_t number = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return number;
}

uint64_t ByteReader::Number() {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) break;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    const uint64_t bits = byte & 127;
    if (shift == 63 && bits > 1) break;
    number |= bits << shift;
    if (byte < 128) return number;
  }
  Fail();
  return 0;
}

int64_t ByteReader::Signed() {
  const uint64_t bits = Number();
  return static_cast<int64_t>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
}

double ByteReader::Real() {
  const uint64_t bits = Number();
  double number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

std::string_view ByteReader::Bytes(uint64_t count) {
  if (count > rest_.size()) {
    Fail();
    return {};
  }
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

size_t ByteReader::Count() {
  const uint64_t count = Number();
  if (count <= rest_.size()) return static_cast<size_t>(count);
  Fail();
  return 0;
}

size_t ByteReader::Below(size_t size) {
  const uint64_t number = Number();
  if (number < size) return static_cast<size_t>(number);
  Fail();
  return 0;
}

}  // namespace kiln
