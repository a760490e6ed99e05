#include "server/buffers/blob_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"

namespace kiln::buffers {
namespace {

constexpr absl::string_view kSha256 = "sha256:";
constexpr size_t kDigestDigits = 64;
constexpr absl::string_view kSum = "sum64:";
constexpr size_t kSumDigits = 16;
constexpr size_t kNameBytesMax = 256;

bool IsLowerHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool HasSum(absl::string_view name) {
  return absl::ConsumePrefix(&name, kSum) && IsLowerHex(name.substr(0, kSumDigits), kSumDigits);
}

// An arbitrary name, which says nothing about the bytes.
bool IsPlain(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && !absl::StrContains(name, ':');
}

}  // namespace

bool IsContentAddressed(absl::string_view name) {
  return absl::StartsWith(name, kSha256) || absl::StartsWith(name, kSum);
}

absl::string_view SumIn(absl::string_view name) {
  constexpr size_t kSize = kSum.size() + kSumDigits + 1;
  if (!HasSum(name) || name.size() < kSize || name[kSize - 1] != ':') return {};
  return name.substr(0, kSize);
}

absl::string_view DigestIn(absl::string_view name) {
  name.remove_prefix(SumIn(name).size());
  if (!absl::ConsumePrefix(&name, kSha256) || !IsLowerHex(name, kDigestDigits)) return {};
  return name;
}

bool IsSumAlone(absl::string_view name) {
  return name.size() == kSum.size() + kSumDigits && HasSum(name);
}

absl::Status CheckBlobName(absl::string_view name) {
  const absl::string_view sum = SumIn(name);
  if (!DigestIn(name).empty() || IsPlain(name.substr(sum.size()))) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          "invalid blob name ", Quoted({name.data(), name.size()}), ": use \"sha256:\" and ",
          kDigestDigits, " lower-case hexadecimal digits, or a name of 1 to ", kNameBytesMax,
          " bytes without a colon; either may follow \"sum64:\", ", kSumDigits,
          " hexadecimal digits and a colon")),
      "BAD_BLOB_NAME");
}

}  // namespace kiln::buffers
