// Closes a session for a caller who does not have its id, a user or an admin, by the name in lists.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {
namespace {

// The number in a SessionIdentity::name; 0 if `name` is not one.
int64_t NumberIn(absl::string_view name) {
  int64_t number = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, "s") || !absl::SimpleAtoi(digits, &number)) return 0;
  return name == absl::StrCat("s", number) ? number : 0;
}

absl::Status UnknownName(const std::string& name, bool of_anybody) {
  return errors::WithReason(
      absl::NotFoundError(
          absl::StrCat(of_anybody ? "there is no session " : "you have no session ", Quoted(name),
                       of_anybody ? ", and you have not detached one under that name"
                                  : ", and none detached under that name",
                       "; `kiln sessions` lists them")),
      "UNKNOWN_NAME", {{"name", name}});
}

absl::Status Ambiguous(const std::string& name, int64_t left) {
  const std::string other = absl::StrCat("s", left);
  return errors::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          Quoted(name), " is a session, and also the name under which you detached session ", other,
          "; attach to that one and detach it under another name, or close it first with `kiln "
          "sessions close ",
          other, "`")),
      "AMBIGUOUS_NAME", {{"name", name}});
}

absl::Status Closed(const std::string& session, bool by_its_user) {
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat(
          "session ", session, " was closed by ", by_its_user ? "its user" : "an admin",
          " with `kiln sessions close`, so its tensors and programs are lost")),
      "SESSION_CLOSED", {{"session", session}});
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> Registry::FindToClose(const std::string& user,
                                                               bool of_anybody,
                                                               const std::string& name) const {
  const bool knows_all = absent_ == nullptr || absent_->KnowsAll();
  const int64_t left = names_.Find(user, name);
  const int64_t listed = NumberIn(name);
  if (absent_ != nullptr) {
    absl::Status status;
    if (left != 0) status = absent_->Ask(left, &user);
    if (status.ok() && listed != 0) status = absent_->Ask(listed, of_anybody ? nullptr : &user);
    if (!status.ok()) return status;
  }
  std::shared_ptr<Session> by_name, by_number;
  for (const std::shared_ptr<Session>& session : List()) {
    const bool is_his = session->user().name == user;
    const int64_t number = session->identity().number;
    if (left != 0 && number == left && is_his) by_name = session;
    if (listed != 0 && number == listed && (is_his || of_anybody)) by_number = session;
  }
  if (by_name && by_number && by_name != by_number) return Ambiguous(name, left);
  if (!by_name && !by_number && !knows_all)
    return Restarting("the daemon is still reading the checkpoints of its sessions; try again");
  if (!by_name && !by_number) return UnknownName(name, of_anybody);
  const auto& found = by_name ? by_name : by_number;
  KILN_CHECK(of_anybody || found->user().name == user) << found->identity().name;
  return found;
}

absl::StatusOr<std::shared_ptr<Session>> Registry::CloseByName(const std::string& user,
                                                               bool of_anybody,
                                                               const std::string& name) {
  const auto session = FindToClose(user, of_anybody, name);
  if (!session.ok()) return session.status();
  // The session may be frozen for the next daemon, which may be asked again.
  if (absl::Status status = (*session)->CheckOpen(); !status.ok()) return status;
  const SessionIdentity& identity = (*session)->identity();
  const std::string& owner = (*session)->user().name;
  const absl::Status reason = Closed(identity.name, owner == user);
  // First, so that a client that asks after the session is gone gets the reason.
  closed_.Remember(identity.id, owner, reason);
  {
    absl::MutexLock lock(&mutex_);
    if (sessions_.erase(identity.id) == 0) return UnknownName(name, of_anybody);
    KILN_VALIDATE(*this, entries());
  }
  (*session)->Close(reason);
  log::Info("session_closed", {{"session", identity.name},
                               {"why", owner == user ? "closed by its user" : "closed by an admin"},
                               {"by", user}});
  return session;
}

}  // namespace kiln::sessions
