#include "server/sessions/encoding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/cord.h"

namespace kiln::sessions {

void Encoder::Number(uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_.push_back(static_cast<char>(number | 128));
  bytes_.push_back(static_cast<char>(number));
}

void Encoder::Signed(int64_t number) {
  // The sign is the lowest bit, so that small numbers of either sign take few bytes.
  const auto bits = static_cast<uint64_t>(number);
  Number(number < 0 ? ~bits << 1 | 1 : bits << 1);
}

void Encoder::Real(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  Number(bits);
}

void Encoder::Text(absl::string_view text) {
  Number(text.size());
  bytes_.append(text.data(), text.size());
}

void Encoder::Numbers(absl::Span<const uint64_t> numbers) {
  Number(numbers.size());
  for (const uint64_t number : numbers) Number(number);
}

void Encoder::Texts(absl::Span<const std::string> texts) {
  Number(texts.size());
  for (const std::string& text : texts) Text(text);
}

void Encoder::Type(const buffers::TensorType& type) {
  Number(static_cast<uint64_t>(type.dtype));
  Number(type.shape.size());
  for (const int64_t size : type.shape) Signed(size);
}

void Encoder::Status(const absl::Status& status) {
  Number(static_cast<uint64_t>(status.code()));
  if (status.ok()) return;
  Text(status.message());
  std::vector<std::pair<std::string, std::string>> payloads;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    payloads.emplace_back(std::string(url), std::string(payload));
  });
  std::sort(payloads.begin(), payloads.end());  // Abseil's order is unspecified
  Number(payloads.size());
  for (const auto& [url, payload] : payloads) {
    Text(url);
    Text(payload);
  }
}

uint64_t Decoder::Number() {
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

int64_t Decoder::Signed() {
  const uint64_t bits = Number();
  return static_cast<int64_t>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
}

double Decoder::Real() {
  const uint64_t bits = Number();
  double number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

absl::string_view Decoder::Text() {
  const size_t size = Count();
  const absl::string_view text = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return text;
}

std::vector<uint64_t> Decoder::Numbers() {
  std::vector<uint64_t> numbers(Count());
  for (uint64_t& number : numbers) number = Number();
  return numbers;
}

std::vector<std::string> Decoder::Texts() {
  std::vector<std::string> texts(Count());
  for (std::string& text : texts) text = std::string(Text());
  return texts;
}

buffers::TensorType Decoder::Type() {
  buffers::TensorType type;
  type.dtype = static_cast<ir::DType>(Below(ir::kNumDTypes));
  type.shape.resize(Count());
  for (int64_t& size : type.shape) size = Signed();
  return type;
}

absl::Status Decoder::Status() {
  const size_t code = Below(17);
  if (code == 0) return absl::OkStatus();
  absl::Status status(static_cast<absl::StatusCode>(code), Text());
  for (size_t payloads = Count(); payloads > 0; --payloads) {
    const absl::string_view url = Text();
    status.SetPayload(url, absl::Cord(Text()));
  }
  return status;
}

size_t Decoder::Count() {
  const uint64_t count = Number();
  if (count <= rest_.size()) return static_cast<size_t>(count);
  Fail();
  return 0;
}

size_t Decoder::Below(size_t size) {
  const uint64_t number = Number();
  if (number < size) return static_cast<size_t>(number);
  Fail();
  return 0;
}

std::vector<size_t> Decoder::AllBelow(size_t size) {
  std::vector<size_t> numbers(Count());
  for (size_t& number : numbers) number = Below(size);
  return numbers;
}

}  // namespace kiln::sessions
