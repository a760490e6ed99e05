#include "server/quota/limit_store.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/state/line_file.h"

namespace kiln::quota {
namespace {

// A line for each user: "ann device_memory=4294967296 sessions=8".
constexpr char kHeader[] = "kiln quotas 2";

std::string ToLine(const std::string& user, const LimitStore::Overrides& overrides) {
  std::string line = user;
  for (const auto& [resource, limit] : overrides)
    absl::StrAppend(&line, " ", RowOf(resource).name, "=", limit);
  return line;
}

std::optional<std::pair<std::string, LimitStore::Overrides>> FromLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  if (fields.size() < 2 || fields[0].empty()) return std::nullopt;
  LimitStore::Overrides overrides;
  for (size_t i = 1; i < fields.size(); ++i) {
    const std::pair<std::string, std::string> field = absl::StrSplit(fields[i], '=');
    const auto resource = ParseResource(field.first);
    int64_t limit = 0;
    if (!resource || !absl::SimpleAtoi(field.second, &limit) || limit < 0) return std::nullopt;
    overrides[*resource] = limit;
  }
  return std::pair(fields[0], std::move(overrides));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LimitStore>> LimitStore::Open(const std::string& path,
                                                             Limits defaults, size_t users_max) {
  auto users = Read(path);
  if (!users.ok()) return users.status();
  return std::unique_ptr<LimitStore>(new LimitStore(path, defaults, users_max, *std::move(users)));
}

absl::StatusOr<LimitStore::Users> LimitStore::Read(const std::string& path) {
  const auto lines = state::ReadLines(path, kHeader);
  if (!lines.ok()) return lines.status();
  Users users;
  for (const std::string& line : *lines) {
    auto entry = FromLine(line);
    if (!entry) return state::Damaged(path);
    users.insert(*std::move(entry));
  }
  return users;
}

absl::Status LimitStore::Reload(Limits defaults) {
  absl::MutexLock lock(&mutex_);
  defaults_ = defaults;
  auto users = Read(path_);
  if (!users.ok()) return users.status();
  users_ = *std::move(users);
  KILN_VALIDATE(*this, users_.size());
  return absl::OkStatus();
}

Limits LimitStore::LimitsOf(const std::string& user) const {
  absl::MutexLock lock(&mutex_);
  Limits limits = defaults_;
  const auto found = users_.find(user);
  if (found == users_.end()) return limits;
  for (const auto& [resource, limit] : found->second) limits[resource] = limit;
  return limits;
}

LimitStore::Overrides LimitStore::OverridesOf(const std::string& user) const {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(user);
  return found == users_.end() ? Overrides() : found->second;
}

absl::Status LimitStore::Set(const std::string& user, const Changes& changes) {
  // A line of the file would have other fields.
  KILN_CHECK(!user.empty() && user.find(' ') == std::string::npos) << user;
  absl::MutexLock lock(&mutex_);
  Users users = users_;
  Overrides& overrides = users[user];
  for (const auto& [resource, limit] : changes) {
    if (limit) {
      overrides[resource] = *limit;
    } else {
      overrides.erase(resource);
    }
  }
  if (overrides.empty()) users.erase(user);
  if (users.size() > users_max_) {
    return errors::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                  "limits are set for ", users_.size(),
                                  " users, which is the maximum; reset some to the defaults (`kiln "
                                  "quota set USER NAME=default`), or change the defaults")),
                              "TOO_MANY_QUOTAS", {{"limit", absl::StrCat(users_max_)}});
  }
  std::vector<std::string> lines;
  for (const auto& [name, set] : users) lines.push_back(ToLine(name, set));
  if (absl::Status status = state::WriteLines(path_, kHeader, lines); !status.ok()) return status;
  users_ = std::move(users);
  KILN_VALIDATE(*this, users_.size());
  return absl::OkStatus();
}

void LimitStore::Validate() const {
  for (const auto& [user, overrides] : users_) {
    KILN_CHECK(!user.empty() && user.find(' ') == std::string::npos) << user;
    KILN_CHECK(!overrides.empty()) << "user " << user << " has only defaults";
    for (const auto& [resource, limit] : overrides)
      KILN_CHECK_LT(static_cast<int>(resource), kNumResources) << "user " << user;
  }
}

std::map<std::string, LimitStore::Overrides> LimitStore::List() const {
  absl::MutexLock lock(&mutex_);
  return users_;
}

}  // namespace kiln::quota
