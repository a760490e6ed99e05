#include "server/sessions/session_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

constexpr size_t kLongestName = 64;

bool MayStandInName(char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  if (!name.empty() && name.size() <= kLongestName &&
      std::all_of(name.begin(), name.end(), MayStandInName)) {
    return absl::OkStatus();
  }
  const std::string shown(name.substr(0, kLongestName));
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "the name of ", what, ", ", Quoted(shown), ", must have 1 to ",
                                kLongestName, " letters, digits and \"._-\"")),
                            "BAD_NAME", {{"name", shown}});
}

absl::Status SessionNames::Claim(const std::string& user, const std::string& name,
                                 int64_t session) {
  KILN_CHECK(!name.empty());
  KILN_CHECK_GT(session, 0);
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = sessions_.emplace(Name(user, name), session);
  if (!is_new && entry->second != session) {
    return errors::WithReason(
        absl::AlreadyExistsError(absl::StrCat(
            "your session s", entry->second, " has the name ", Quoted(name),
            "; attach to it, close it with `kiln sessions close ", name, "`, or use another name")),
        "NAME_TAKEN", {{"name", name}});
  }
  Name& current = names_[session];
  if (current != entry->first && !current.second.empty()) sessions_.erase(current);
  current = entry->first;
  KILN_VALIDATE(*this, names_.size());
  return absl::OkStatus();
}

void SessionNames::Release(int64_t session) {
  absl::MutexLock lock(&mutex_);
  const auto found = names_.find(session);
  if (found == names_.end()) return;
  sessions_.erase(found->second);
  names_.erase(found);
  KILN_VALIDATE(*this, names_.size());
}

int64_t SessionNames::Find(const std::string& user, const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(Name(user, name));
  return found == sessions_.end() ? 0 : found->second;
}

void SessionNames::Validate() const {
  KILN_CHECK_EQ(sessions_.size(), names_.size());
  for (const auto& [session, name] : names_) {
    KILN_CHECK(!name.second.empty()) << "session " << session;
    const auto found = sessions_.find(name);
    KILN_CHECK(found != sessions_.end()) << "session " << session;
    KILN_CHECK_EQ(found->second, session);
  }
}

}  // namespace kiln::sessions
