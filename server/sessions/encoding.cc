#include "server/sessions/encoding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"

namespace kiln::sessions {

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
  absl::Status status(static_cast<absl::StatusCode>(code), std::string(Text()));
  for (size_t payloads = Count(); payloads > 0; --payloads) {
    const std::string url(Text());
    status.SetPayload(url, absl::Cord(std::string(Text())));
  }
  return status;
}

std::vector<size_t> Decoder::AllBelow(size_t size) {
  std::vector<size_t> numbers(Count());
  for (size_t& number : numbers) number = Below(size);
  return numbers;
}

}  // namespace kiln::sessions
