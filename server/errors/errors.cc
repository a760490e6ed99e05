#include "server/errors/errors.h"

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"

namespace kiln::errors {
namespace {
constexpr absl::string_view kReason = "reason";
constexpr size_t kLongestMessage = 1000;

std::string Url(absl::string_view key) { return absl::StrCat(kPayloadPrefix, key); }
}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason,
                        std::initializer_list<Detail> details) {
  if (status.ok()) return status;
  status.SetPayload(Url(kReason), absl::Cord(reason));
  for (const Detail& detail : details)
    status.SetPayload(Url(detail.first), absl::Cord(Shown(detail.second)));
  return status;
}

absl::Status WithBoundedMessage(const absl::Status& status) {
  if (status.message().size() <= kLongestMessage) return status;
  const std::string message(status.message());
  absl::Status bounded(status.code(),
                       absl::StrCat(std::string(Shortened(message, kLongestMessage - 3)), "..."));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& value) { bounded.SetPayload(url, value); });
  return bounded;
}

int64_t BytesOf(const absl::Status& status) {
  constexpr size_t kPerPayload = 128;
  if (status.ok()) return 0;
  size_t bytes = kPerPayload + status.message().size();
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    bytes += kPerPayload + url.size() + value.size();
  });
  return static_cast<int64_t>(bytes);
}

std::string Reason(const absl::Status& status) {
  if (const auto payload = status.GetPayload(Url(kReason))) return std::string(*payload);
  return absl::StatusCodeToString(status.code());
}

std::map<std::string, std::string> Details(const absl::Status& status) {
  std::map<std::string, std::string> details;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (!absl::ConsumePrefix(&url, kPayloadPrefix) || url == kReason) return;
    details.emplace(std::string(url), std::string(value));
  });
  return details;
}

}  // namespace kiln::errors
