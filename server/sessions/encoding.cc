#include "server/sessions/encoding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"

namespace kiln::sessions {

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

}  // namespace kiln::sessions
