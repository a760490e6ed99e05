#include "server/rpc/services/quotas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"
#include "server/quota/limit_store.h"

namespace kiln::rpc {
namespace {

absl::StatusOr<quota::Resource> ResourceOf(const std::string& name) {
  if (const auto resource = quota::ParseResource(name)) return *resource;
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "there is no limit for ", Quoted(name), "; use one of ",
                                absl::StrJoin(quota::Resources(), ", ",
                                              [](std::string* out, const quota::ResourceRow& row) {
                                                absl::StrAppend(out, row.name);
                                              }))),
                            "UNKNOWN_RESOURCE", {{"resource", name}});
}

absl::StatusOr<quota::LimitStore::Changes> ChangesIn(const v1::SetQuotaRequest& request) {
  quota::LimitStore::Changes changes;
  for (const auto& [name, limit] : request.limits()) {
    const auto resource = ResourceOf(name);
    if (!resource.ok()) return resource.status();
    if (*resource == quota::Resource::kWeight && (limit < 1 || limit > quota::kWeightMax)) {
      return errors::WithReason(absl::InvalidArgumentError(
                                    absl::StrCat("weight must be 1 to ", quota::kWeightMax,
                                                 ", and ", quota::kUsualWeight, " is the default")),
                                "BAD_WEIGHT");
    }
    // Larger values than can occur are clamped.
    changes[*resource] =
        static_cast<int64_t>(std::min<uint64_t>(limit, std::numeric_limits<int64_t>::max()));
  }
  for (const std::string& name : request.defaults()) {
    const auto resource = ResourceOf(name);
    if (!resource.ok()) return resource.status();
    changes[*resource] = std::nullopt;
  }
  return changes;
}

// For a user without sessions.
std::vector<sessions::User::Use> NoUses(const quota::Limits& limits) {
  std::vector<sessions::User::Use> uses;
  for (const quota::ResourceRow& row : quota::Resources())
    uses.push_back({row.resource, "", 0, limits[row.resource]});
  return uses;
}

}  // namespace

absl::Status SetLimits(const AdminServiceParts& parts, const v1::SetQuotaRequest& request) {
  // Accounts of the system need not be known as users.
  if (request.user() != auth::kLocalUser)
    if (absl::Status status = auth::CheckUserName(request.user()); !status.ok()) return status;
  const auto changes = ChangesIn(request);
  if (!changes.ok()) return changes.status();
  absl::Status status = parts.limits->Set(request.user(), *changes);
  if (status.ok()) parts.registry->UpdateLimits(request.user());
  return status;
}

std::string ChangesText(const v1::SetQuotaRequest& request) {
  std::string text = request.user();
  const std::map<std::string, uint64_t> limits(request.limits().begin(), request.limits().end());
  for (const auto& [name, limit] : limits) absl::StrAppend(&text, " ", name, "=", limit);
  for (const std::string& name : request.defaults()) absl::StrAppend(&text, " ", name, "=default");
  return text;
}

std::set<std::string> UsersWithQuotas(const AdminServiceParts& parts) {
  std::set<std::string> names;
  for (const auth::StoredUser& user : parts.users->store().List()) names.insert(user.name);
  for (const auto& [user, overrides] : parts.limits->List()) names.insert(user);
  for (const auto& user : parts.registry->ListUsers()) names.insert(user->name);
  return names;
}

void Fill(const AdminServiceParts& parts, const std::string& user, v1::UserQuotas* proto) {
  proto->set_user(user);
  const auto all = parts.registry->ListUsers();
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const auto& other) { return other->name == user; });
  const quota::LimitStore::Overrides overrides = parts.limits->OverridesOf(user);
  std::vector<sessions::User::Use> uses;
  if (known != all.end()) uses = (*known)->GetUses();
  if (uses.empty()) uses = NoUses(parts.limits->LimitsOf(user));
  for (const sessions::User::Use& use : uses) {
    const quota::ResourceRow& row = quota::RowOf(use.resource);
    v1::ResourceQuota* resource = proto->add_resources();
    resource->set_resource(std::string(row.name));
    resource->set_device(use.device);
    const bool is_disk = use.resource == quota::Resource::kDisk;
    const int64_t used = is_disk ? parts.saved_bytes(user) : use.used;
    resource->set_used(static_cast<uint64_t>(std::max<int64_t>(0, used)));
    resource->set_limit(static_cast<uint64_t>(use.limit));
    resource->set_in_bytes(row.is_bytes);
    resource->set_is_set(overrides.contains(use.resource));
  }
}

}  // namespace kiln::rpc
