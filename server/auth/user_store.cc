#include "server/auth/user_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"
#include "server/state/line_file.h"

namespace kiln::auth {
namespace {

// A line for each user: name, role, token's id, created and revoked in seconds since 1970 (0: he is
// not), hash. None of them has a blank in it.
constexpr char kHeader[] = "kiln users 2";
constexpr size_t kLongestName = 64;

std::string ToLine(const StoredUser& user) {
  return absl::StrJoin(
      {user.name, std::string(Name(user.role)), user.token_id,
       absl::StrCat(absl::ToUnixSeconds(user.created)),
       absl::StrCat(user.revoked ? absl::ToUnixSeconds(*user.revoked) : 0), user.hash},
      " ");
}

std::optional<StoredUser> FromLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  if (fields.size() != 6 || !CheckUserName(fields[0]).ok()) return std::nullopt;
  const auto role = ParseRole(fields[1]);
  int64_t created = 0;
  int64_t revoked = 0;
  if (!role || !absl::SimpleAtoi(fields[3], &created) || !absl::SimpleAtoi(fields[4], &revoked))
    return std::nullopt;
  StoredUser user{fields[0],   *role, fields[2], fields[5], absl::FromUnixSeconds(created),
                  std::nullopt};
  if (revoked != 0) user.revoked = absl::FromUnixSeconds(revoked);
  return user;
}

}  // namespace

absl::Status CheckUserName(const std::string& name) {
  const bool known = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '@';
  });
  if (!name.empty() && name.size() <= kLongestName && known &&
      absl::ascii_isalnum(static_cast<unsigned char>(name[0])) && name != kLocalUser)
    return absl::OkStatus();
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "a user's name has 1 to ", kLongestName,
                                " letters, digits, \"_\", \"-\", \".\" and \"@\" and begins with a "
                                "letter or digit, and \"",
                                kLocalUser, "\" is taken; ", Quoted(name), " does not")),
                            "USER_NAME");
}

absl::StatusOr<std::unique_ptr<UserStore>> UserStore::Open(const std::string& path,
                                                           int most_users) {
  // An empty table is a file, too, so that its loss shows.
  if (!std::filesystem::exists(path)) {
    if (absl::Status status = state::WriteLines(path, kHeader, {}); !status.ok()) return status;
  }
  const auto lines = state::ReadLines(path, kHeader);
  if (!lines.ok()) return lines.status();
  Users users;
  for (const std::string& line : *lines) {
    auto user = FromLine(line);
    // With fewer users than there are, a revoked one, or everybody, would get in.
    if (!user) return state::Damaged(path);
    users[user->name] = *std::move(user);
  }
  return std::unique_ptr<UserStore>(new UserStore(path, most_users, std::move(users)));
}

absl::Status UserStore::CheckNotLost(const std::string& path, const std::string& made_later) {
  if (std::filesystem::exists(path) || !std::filesystem::exists(made_later))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "there is no ", path, " beside ", made_later, ", and without it everybody on this machine ",
      "would get in; restore it, or remove ", made_later, " as well to begin without users"));
}

absl::Status UserStore::Replace(Users users) {
  std::vector<std::string> lines;
  for (const auto& [name, user] : users) lines.push_back(ToLine(user));
  if (absl::Status status = state::WriteLines(path_, kHeader, lines); !status.ok()) return status;
  users_ = std::move(users);
  ++version_;
  return absl::OkStatus();
}

absl::Status UserStore::Add(const StoredUser& user) {
  if (absl::Status status = CheckUserName(user.name); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(user.name);
  if (found != users_.end() && !found->second.revoked) {
    return errors::WithReason(absl::AlreadyExistsError(absl::StrCat(
                                  "there is a user ", Quoted(user.name), "; `kiln user revoke ",
                                  user.name, "` ends the old token, and add makes a new one")),
                              "USER_EXISTS", {{"user", user.name}});
  }
  if (found == users_.end() && static_cast<int>(users_.size()) >= most_users_) {
    return errors::WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "the daemon knows ", users_.size(),
            " users, revoked ones among them, and takes no more; add one under a revoked name")),
        "TOO_MANY_USERS", {{"limit", absl::StrCat(most_users_)}});
  }
  Users users = users_;
  users[user.name] = user;
  return Replace(std::move(users));
}

absl::Status UserStore::Revoke(const std::string& name, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  Users users = users_;
  const auto found = users.find(name);
  if (found == users.end()) {
    return errors::WithReason(
        absl::NotFoundError(absl::StrCat(
            "there is no user ", Quoted(name),
            "; `kiln user list` shows all. One of the system's users, who comes without a token, "
            "is kept out by `kiln user add NAME` first and `kiln user revoke NAME` then")),
        "UNKNOWN_USER", {{"user", name}});
  }
  if (found->second.revoked) {
    return errors::WithReason(
        absl::NotFoundError(absl::StrCat("there is no user ", Quoted(name),
                                         " who is not revoked; `kiln user list` shows all")),
        "UNKNOWN_USER", {{"user", name}});
  }
  found->second.revoked = now;
  return Replace(std::move(users));
}

std::vector<StoredUser> UserStore::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<StoredUser> list;
  for (const auto& [name, user] : users_) list.push_back(user);
  return list;
}

std::optional<StoredUser> UserStore::Find(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(name);
  if (found == users_.end()) return std::nullopt;
  return found->second;
}

std::optional<StoredUser> UserStore::FindByName(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(name);
  if (found == users_.end() || found->second.revoked) return std::nullopt;
  return found->second;
}

std::optional<StoredUser> UserStore::FindByToken(const std::string& token_id) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, user] : users_) {
    if (user.token_id == token_id && !user.revoked) return user;
  }
  return std::nullopt;
}

bool UserStore::empty() const {
  absl::MutexLock lock(&mutex_);
  return users_.empty();
}

int64_t UserStore::version() const {
  absl::MutexLock lock(&mutex_);
  return version_;
}

}  // namespace kiln::auth
