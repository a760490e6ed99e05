#include "server/quota/refusal.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"

namespace kiln::quota {
namespace {

constexpr char kReason[] = "QUOTA_EXCEEDED";
constexpr char kLargest[] = "largest";
constexpr size_t kHoldersMax = 3;

}  // namespace

absl::Status Refusal(const Scope& scope, int64_t asked, int64_t used, int64_t limit) {
  const ResourceRow& row = RowOf(scope.resource);
  const auto text = [&](int64_t amount) { return AmountText(scope.resource, amount); };
  const std::string where = scope.device.empty() ? "" : absl::StrCat(" on ", scope.device);
  // Graph sizes do not add up, so nothing is in use.
  const std::string in_use = used > 0 ? absl::StrCat(" and has ", text(used)) : "";
  absl::Status status = errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "user ", Quoted(scope.user), " may have ", text(limit), " ",
          limit == 1 ? row.one : row.what, where, in_use, ", so ", text(asked),
          in_use.empty() ? "" : " more", " would exceed the limit; ", row.remedy,
          ", or ask an admin to raise the limit (`kiln quota set USER ", row.name, "=...`)")),
      kReason,
      {{"user", scope.user},
       {"quota", std::string(row.name)},
       {"asked", absl::StrCat(asked)},
       {"used", absl::StrCat(used)},
       {"limit", absl::StrCat(limit)}});
  if (!scope.device.empty())
    status = errors::WithReason(status, kReason, {{"device", scope.device}});
  return status;
}

std::optional<Scope> Unexplained(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || errors::Reason(status) != kReason) return std::nullopt;
  std::map<std::string, std::string> details = errors::Details(status);
  const auto resource = ParseResource(details["quota"]);
  if (!resource || details.contains(kLargest)) return std::nullopt;
  return Scope{details["user"], *resource, details["device"]};
}

absl::Status WithHolders(const absl::Status& refusal, Resource resource,
                         std::vector<Holder> holders) {
  if (holders.empty()) return refusal;
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return std::pair(a.amount, a.is_idle) > std::pair(b.amount, b.is_idle);
  });
  const size_t others = holders.size() - std::min(holders.size(), kHoldersMax);
  holders.resize(holders.size() - others);
  std::string named = absl::StrJoin(holders, "; ", [&](std::string* out, const Holder& holder) {
    absl::StrAppend(out, holder.name);
    if (holder.amount > 0) absl::StrAppend(out, ": ", AmountText(resource, holder.amount));
  });
  absl::Status explained(refusal.code(),
                         absl::StrCat(refusal.message(), ". The largest: ", named,
                                      others > 0 ? absl::StrCat("; and ", others, " more") : ""));
  refusal.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    explained.SetPayload(url, payload);
  });
  return errors::WithReason(explained, kReason, {{kLargest, holders[0].name}});
}

}  // namespace kiln::quota
