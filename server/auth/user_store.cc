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
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/state/line_file.h"

namespace kiln::auth {
namespace {

// A line for each user: name, role, identities ("certificate,system", or "-"), created and revoked,
// then the tokens: each "id;created;expires;key;hash". Times are seconds since 1970, or 0 for none.
// No field contains a blank or a semicolon.
constexpr char kHeader[] = "kiln users 3";
// The previous version: name, role, token's id, created, revoked, hash.
constexpr char kHeaderBefore[] = "kiln users 2";
constexpr size_t kLongestName = 64;
constexpr char kNoIdentities[] = "-";

std::string ToText(const std::optional<absl::Time>& time) {
  return absl::StrCat(time ? absl::ToUnixSeconds(*time) : 0);
}

bool ParseTime(const std::string& text, std::optional<absl::Time>* time) {
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds)) return false;
  if (seconds != 0) *time = absl::FromUnixSeconds(seconds);
  return true;
}

std::string ToLine(const StoredUser& user) {
  const std::string identities = absl::StrJoin(user.identities.names(), ",");
  std::string line = absl::StrJoin(
      {user.name, std::string(Name(user.role)), identities.empty() ? kNoIdentities : identities,
       ToText(user.created), ToText(user.revoked)},
      " ");
  for (const StoredToken& token : user.tokens) {
    absl::StrAppend(&line, " ", token.id, ";", ToText(token.created), ";", ToText(token.expires),
                    ";", token.key, ";", token.hash);
  }
  return line;
}

std::optional<StoredToken> TokenFrom(const std::string& text) {
  const std::vector<std::string> fields = absl::StrSplit(text, ';');
  std::optional<absl::Time> created, expires;
  if (fields.size() != 5 || !ParseTime(fields[1], &created) || !ParseTime(fields[2], &expires))
    return std::nullopt;
  return StoredToken{fields[0], fields[4], created.value_or(absl::UnixEpoch()), expires, fields[3]};
}

// Parses the fields that both versions have.
std::optional<StoredUser> UserFrom(const std::string& name, const std::string& role,
                                   const std::string& created, const std::string& revoked) {
  StoredUser user;
  user.name = name;
  const auto parsed = ParseRole(role);
  std::optional<absl::Time> since;
  if (!CheckUserName(name).ok() || !parsed || !ParseTime(created, &since) ||
      !ParseTime(revoked, &user.revoked))
    return std::nullopt;
  user.role = *parsed;
  user.created = since.value_or(absl::UnixEpoch());
  return user;
}

std::optional<StoredUser> FromLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  if (fields.size() < 5 || fields.size() > 5 + kTokensMax) return std::nullopt;
  auto user = UserFrom(fields[0], fields[1], fields[3], fields[4]);
  if (!user) return std::nullopt;
  if (fields[2] != kNoIdentities) {
    const auto identities = ParseIdentities(absl::StrSplit(fields[2], ','));
    if (!identities.ok()) return std::nullopt;
    user->identities = *identities;
  }
  for (size_t i = 5; i < fields.size(); ++i) {
    auto token = TokenFrom(fields[i]);
    if (!token) return std::nullopt;
    user->tokens.push_back(*std::move(token));
  }
  return user;
}

std::optional<StoredUser> FromLineBefore(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  if (fields.size() != 6) return std::nullopt;
  auto user = UserFrom(fields[0], fields[1], fields[3], fields[4]);
  if (!user) return std::nullopt;
  user->identities = {.certificate = true, .system = true};
  user->tokens = {{.id = fields[2], .hash = fields[5], .created = user->created}};
  return user;
}

absl::Status UnknownUser(const std::string& name) {
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("there is no user ", Quoted(name),
                                       " that is not revoked; `kiln user list` shows all")),
      "UNKNOWN_USER", {{"user", name}});
}

}  // namespace

std::vector<std::string> Identities::names() const {
  std::vector<std::string> names;
  if (certificate) names.push_back("certificate");
  if (system) names.push_back("system");
  return names;
}

absl::StatusOr<Identities> ParseIdentities(const std::vector<std::string>& names) {
  Identities identities;
  for (const std::string& name : names) {
    if (name == "certificate") {
      identities.certificate = true;
    } else if (name == "system") {
      identities.system = true;
    } else {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat(
              Quoted(name), " is not a kind of identity; use \"certificate\" or \"system\"")),
          "UNKNOWN_IDENTITY", {{"identity", name}});
    }
  }
  return identities;
}

const StoredToken* StoredUser::FindToken(const std::string& id) const {
  for (const StoredToken& token : tokens)
    if (token.id == id) return &token;
  return nullptr;
}

absl::Status CheckUserName(const std::string& name) {
  const bool known = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '@';
  });
  if (!name.empty() && name.size() <= kLongestName && known &&
      absl::ascii_isalnum(static_cast<unsigned char>(name[0])) && name != kLocalUser)
    return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("a user name must have 1 to ", kLongestName,
                                              " letters, digits, \"_\", \"-\", \".\" and \"@\", "
                                              "begin with a letter or digit, and not be \"",
                                              kLocalUser, "\", which is reserved; ", Quoted(name),
                                              " is not allowed")),
      "USER_NAME");
}

absl::StatusOr<std::unique_ptr<UserStore>> UserStore::Open(const std::string& path, int users_max) {
  // An empty table is also written to a file, so that a lost file is noticed.
  if (!std::filesystem::exists(path)) {
    if (absl::Status status = state::WriteLines(path, kHeader, {}); !status.ok()) return status;
  }
  auto users = Read(path);
  if (!users.ok()) return users.status();
  return std::unique_ptr<UserStore>(new UserStore(path, users_max, *std::move(users)));
}

absl::StatusOr<UserStore::Users> UserStore::Read(const std::string& path) {
  auto lines = state::ReadLines(path, kHeader);
  auto before = absl::IsDataLoss(lines.status()) ? state::ReadLines(path, kHeaderBefore) : lines;
  const bool is_before = !lines.ok() && before.ok();
  if (is_before) lines = std::move(before);
  if (!lines.ok()) return lines.status();
  Users users;
  for (const std::string& line : *lines) {
    auto user = is_before ? FromLineBefore(line) : FromLine(line);
    // With a user missing, a revoked user, or anyone, could get access.
    if (!user) return state::Damaged(path);
    users[user->name] = *std::move(user);
  }
  return users;
}

absl::StatusOr<std::vector<std::string>> UserStore::Reload() {
  absl::MutexLock lock(&mutex_);
  // No file means no users, and no users would let everybody in.
  if (!std::filesystem::exists(path_))
    return absl::NotFoundError(absl::StrCat("there is no ", path_));
  auto users = Read(path_);
  if (!users.ok()) return users.status();
  if (users->empty() && !users_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     " has no users, and without users everyone could use the daemon; if that is "
                     "wanted, restart kilnd"));
  }
  std::vector<std::string> gone;
  for (const auto& [name, user] : users_) {
    const auto found = users->find(name);
    if (!user.revoked && (found == users->end() || found->second.revoked)) gone.push_back(name);
  }
  users_ = *std::move(users);
  ++version_;
  KILN_VALIDATE(*this, users_.size());
  return gone;
}

absl::Status UserStore::CheckNotLost(const std::string& path, const std::string& made_later) {
  if (std::filesystem::exists(path) || !std::filesystem::exists(made_later))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("there is no ", path, " beside ", made_later,
                                          ", and without it every user of this machine ",
                                          "could use the daemon; restore it, or remove ",
                                          made_later, " as well to begin without users"));
}

absl::Status UserStore::Replace(Users users) {
  std::vector<std::string> lines;
  for (const auto& [name, user] : users) lines.push_back(ToLine(user));
  if (absl::Status status = state::WriteLines(path_, kHeader, lines); !status.ok()) return status;
  users_ = std::move(users);
  ++version_;
  KILN_VALIDATE(*this, users_.size());
  return absl::OkStatus();
}

void UserStore::Validate() const {
  KILN_CHECK_GT(version_, 0);
  for (const auto& [name, user] : users_) {
    KILN_CHECK_EQ(user.name, name);
    // Otherwise a line of the file would have other fields.
    KILN_CHECK(CheckUserName(name).ok()) << name;
    KILN_CHECK_LE(user.tokens.size(), kTokensMax) << name;
  }
}

absl::Status UserStore::Add(const StoredUser& user) {
  if (absl::Status status = CheckUserName(user.name); !status.ok()) return status;
  KILN_CHECK_LE(user.tokens.size(), kTokensMax) << user.name;
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(user.name);
  if (found != users_.end() && !found->second.revoked) {
    return errors::WithReason(
        absl::AlreadyExistsError(
            absl::StrCat("there is a user ", Quoted(user.name), "; `kiln user revoke ", user.name,
                         "` ends the old token, then `kiln user add` makes a new one")),
        "USER_EXISTS", {{"user", user.name}});
  }
  if (found == users_.end() && static_cast<int>(users_.size()) >= users_max_) {
    return errors::WithReason(
        absl::ResourceExhaustedError(absl::StrCat("the daemon knows ", users_.size(),
                                                  " users, including revoked ones, which is the "
                                                  "limit; add the user under a revoked name")),
        "TOO_MANY_USERS", {{"limit", absl::StrCat(users_max_)}});
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
            "; `kiln user list` shows all. To keep out a system account, which needs no token, run "
            "`kiln user add NAME --by system` and then `kiln user revoke NAME`")),
        "UNKNOWN_USER", {{"user", name}});
  }
  if (found->second.revoked) return UnknownUser(name);
  found->second.revoked = now;
  return Replace(std::move(users));
}

absl::Status UserStore::AddToken(const std::string& name, const StoredToken& token) {
  absl::MutexLock lock(&mutex_);
  Users users = users_;
  const auto found = users.find(name);
  if (found == users.end() || found->second.revoked) return UnknownUser(name);
  std::vector<StoredToken>& tokens = found->second.tokens;
  std::erase_if(tokens, [&](const StoredToken& old) { return old.IsExpired(token.created); });
  if (tokens.size() >= kTokensMax) {
    return errors::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                  "the user ", Quoted(name), " has ", tokens.size(),
                                  " tokens, which is the limit; `kiln user token list ", name,
                                  "` shows them, `kiln user token revoke ID` ends one")),
                              "TOO_MANY_TOKENS", {{"limit", absl::StrCat(kTokensMax)}});
  }
  tokens.push_back(token);
  KILN_CHECK_LE(tokens.size(), kTokensMax) << name;
  return Replace(std::move(users));
}

absl::StatusOr<std::string> UserStore::RevokeToken(const std::string& token_id) {
  absl::MutexLock lock(&mutex_);
  Users users = users_;
  for (auto& [name, user] : users) {
    if (user.revoked || user.FindToken(token_id) == nullptr) continue;
    std::erase_if(user.tokens, [&](const StoredToken& token) { return token.id == token_id; });
    KILN_CHECK(user.FindToken(token_id) == nullptr) << name;
    const std::string whose = name;
    if (absl::Status status = Replace(std::move(users)); !status.ok()) return status;
    return whose;
  }
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("there is no token ", Quoted(token_id),
                                       "; `kiln user token list NAME` shows the tokens of a user")),
      "UNKNOWN_TOKEN", {{"token", token_id}});
}

bool UserStore::HasTokensOfAnotherKey(const std::string& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, user] : users_) {
    if (user.revoked) continue;
    for (const StoredToken& token : user.tokens)
      if (fingerprint.empty() || (!token.key.empty() && token.key != fingerprint)) return true;
  }
  return false;
}

absl::Status UserStore::DropTokens() {
  absl::MutexLock lock(&mutex_);
  Users users = users_;
  for (auto& [name, user] : users) user.tokens.clear();
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

std::optional<StoredUser> UserStore::FindByToken(const std::string& token_id) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, user] : users_) {
    if (!user.revoked && user.FindToken(token_id) != nullptr) return user;
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
