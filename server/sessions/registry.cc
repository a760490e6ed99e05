#include "server/sessions/registry.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// The memory of a session's objects; its stream is charged separately.
constexpr int64_t kSessionBytes = 32 << 10;
// The sessions that a user may have, however few are free.
constexpr int64_t kSessionsOfAUser = 8;
// 1/16 of all sessions is reserved for users who have none.
constexpr int64_t kShareForNewcomers = 16;
// Limits of the interval between checkpoints.
constexpr absl::Duration kShortestInterval = absl::Seconds(1);
// Bounds the time that the replay of a log takes.
constexpr absl::Duration kLongestInterval = absl::Hours(1);
constexpr size_t kIdSize = 32;  // of an id after its mark

absl::Status NotListedYet() {
  return Restarting("the daemon is still reading the checkpoints of its sessions; attach again");
}

absl::Status UnknownSession() {
  return errors::WithReason(
      absl::NotFoundError("the session is unknown, closed or expired; open a new one"),
      "UNKNOWN_SESSION");
}

absl::Status NoCheckpoints() {
  return errors::WithReason(
      absl::FailedPreconditionError(
          "this daemon cannot write checkpoints of sessions because it has no state folder (see "
          "sessions_not_kept in its log); set snapshot_seconds to 0"),
      "SNAPSHOTS_UNAVAILABLE");
}

absl::Status LostSession() {
  return errors::WithReason(
      absl::NotFoundError("the session and its tensors and programs are lost: its daemon was "
                          "killed or could not write its checkpoint, and another daemon runs now; "
                          "open a new session and load your last saved state"),
      "SESSION_LOST");
}

// Returns whether the device has room for this many bytes of a saved session.
absl::Status CheckMemory(runtime::ManagedDevice& device, int64_t needed) {
  const auto free = [&] { return device.pool()->total_bytes() - device.pool()->used_bytes(); };
  if (needed > free()) device.arenas().DropIdle();
  if (needed <= free()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("its tensors take ", needed, " bytes, and ",
                                                   free(), " are free on ", device.name()));
}

void LogClosed(const Session& session, const std::string& why) {
  log::Info("session_closed", {{"session", session.identity().name}, {"why", why}});
}

}  // namespace

absl::Status Restarting(absl::string_view why) {
  return errors::WithReason(absl::UnavailableError(why), "RESTARTING");
}

std::string RandomId() {
  std::string bytes(16, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::BytesToHexString(bytes);
}

FullId Split(const std::string& id) {
  const size_t dot = id.find('.');
  FullId split{id.substr(0, dot)};
  if (dot != std::string::npos && !absl::SimpleAtoi(id.substr(dot + 1), &split.generation))
    return {};
  return split;
}

Registry::Registry(Options options, std::vector<runtime::ManagedDevice*> devices)
    : options_([&] {
        options.services.names = &names_;
        options.services.devices = devices;
        return std::move(options);
      }()),
      devices_(std::move(devices)) {
  KILN_CHECK(!devices_.empty());
  KILN_CHECK(options_.new_id != nullptr);
  KILN_CHECK(options_.services.host != nullptr);
}

absl::StatusOr<runtime::ManagedDevice*> Registry::Choose(const std::string& name) const {
  if (!name.empty()) {
    auto device = FindDevice(devices_, name);
    if (!device.ok()) return device;
    if (absl::Status status = (*device)->CheckUsable(true); !status.ok()) return status;
    return device;
  }
  runtime::ManagedDevice* best = nullptr;
  int64_t fewest = 0;
  absl::Status why;
  for (runtime::ManagedDevice* device : devices_) {
    if (absl::Status status = device->CheckUsable(true); !status.ok()) {
      why = status;
      continue;
    }
    const int64_t count = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
      return &entry.second->device() == device;
    });
    if (best == nullptr || count < fewest) {
      best = device;
      fewest = count;
    }
  }
  if (best == nullptr) return why;
  return best;
}

absl::Status Registry::TooManySessions() const {
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat("this daemon has ", sessions_.size(),
                                                " open sessions, which is its limit; close one, ",
                                                "or start kilnd with a higher --session_limit")),
      "TOO_MANY_SESSIONS", {{"limit", absl::StrCat(options_.sessions_max)}});
}

absl::Status Registry::CheckRoomFor(const User& user) const {
  const int64_t limit = options_.sessions_max;
  const int64_t free = limit - static_cast<int64_t>(sessions_.size());
  if (free <= 0) return TooManySessions();
  const int64_t held = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return &entry.second->user() == &user;
  });
  if (const int64_t allowed = user.sessions.limit(); allowed > 0 && held >= allowed)
    return quota::Refusal(user.sessions.scope(), 1, held, allowed);
  if (held == 0) return absl::OkStatus();
  if (free > limit / kShareForNewcomers && held < std::max(kSessionsOfAUser, free))
    return absl::OkStatus();
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "user ", Quoted(user.name), " has ", held, " open sessions, and ", free, " of ", limit,
          " are free; a user may have as many as are free, and always at least ", kSessionsOfAUser,
          "; close one (`kiln sessions close NAME`), or start kilnd with a higher "
          "--session_limit")),
      "USER_SESSIONS",
      {{"user", user.name},
       {"used", absl::StrCat(held)},
       {"limit", absl::StrCat(std::max(kSessionsOfAUser, free))}});
}

absl::StatusOr<std::shared_ptr<Session>> Registry::Open(const std::string& user, ClientInfo client,
                                                        absl::Duration lease,
                                                        const std::string& device,
                                                        fairness::Priority priority,
                                                        absl::Duration checkpoint_interval) {
  if (checkpoint_interval > absl::ZeroDuration()) {
    if (!options_.services.new_recorder) return NoCheckpoints();
    checkpoint_interval = std::clamp(checkpoint_interval, kShortestInterval, kLongestInterval);
  }
  auto session = Add(user, std::move(client), lease, device, priority, checkpoint_interval);
  if (!session.ok()) return Explained(user, session.status());
  // Without the lock, because the reader of the log may be slow.
  const SessionIdentity& opened = (*session)->identity();
  log::Info("session_opened", {{"session", opened.name},
                               {"user", user},
                               {"device", (*session)->device().name()},
                               {"lease_seconds", absl::StrCat(absl::ToDoubleSeconds(opened.lease))},
                               {"client", opened.client.name},
                               {"description", opened.client.description}});
  if (checkpoint_interval > absl::ZeroDuration()) {
    if (options_.begin_checkpoints) options_.begin_checkpoints(*session);
  }
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> Registry::Add(const std::string& user, ClientInfo client,
                                                       absl::Duration lease,
                                                       const std::string& device,
                                                       fairness::Priority priority,
                                                       absl::Duration checkpoint_interval) {
  absl::MutexLock lock(&mutex_);
  if (!refusal_.ok()) return refusal_;
  const std::shared_ptr<User> owner = UserOf(user);
  if (absl::Status status = CheckRoomFor(*owner); !status.ok()) return status;
  auto chosen = Choose(device);
  if (!chosen.ok()) return chosen.status();
  const bool names_no_lease = lease <= absl::ZeroDuration();
  if (names_no_lease) lease = options_.default_lease;
  // Before the number is used: a session for which there is no memory gets no number.
  auto host =
      options_.services.host->NewAccount(absl::StrCat("session s", next_number_), owner->host);
  auto charge = host->Reserve(memory::Use::kSessions, kSessionBytes);
  if (!charge.ok()) return charge.status();
  SessionIdentity identity;
  identity.number = next_number_++;
  identity.id = absl::StrCat(options_.mark, options_.new_id());
  identity.name = absl::StrCat("s", identity.number);
  identity.client = std::move(client);
  identity.lease = std::clamp(lease, absl::Seconds(1), options_.lease_max);
  // A socket within this machine closes only when its process ends, never because a laptop sleeps.
  if (names_no_lease && identity.client.is_local) identity.away_lease = options_.local_away_lease;
  identity.priority = priority;
  identity.checkpoint_interval = checkpoint_interval;
  identity.opened = options_.services.clock.wall();
  auto session = std::make_shared<Session>(std::move(identity), owner, **chosen, options_.services,
                                           std::move(host), *std::move(charge));
  const bool is_new = sessions_.emplace(session->identity().id, session).second;
  KILN_CHECK(is_new) << session->identity().name << " has the id of another session";
  owner->AddSession(session);
  KILN_VALIDATE(*this, entries());
  return session;
}

const std::shared_ptr<User>& Registry::UserOf(const std::string& name) {
  auto& user = users_[name];
  if (!user) {
    std::vector<std::string> devices;
    for (const runtime::ManagedDevice* device : devices_) devices.push_back(device->name());
    user = std::make_shared<User>(name, options_.services.host->NewUserAccount(name), devices);
    user->SetLimits(options_.limits_of(name));
    KILN_VALIDATE(*this, entries());
  }
  return user;
}

absl::Status Registry::Explained(const std::string& user, const absl::Status& status) const {
  std::shared_ptr<User> owner;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = users_.find(user);
    if (found == users_.end()) return status;
    owner = found->second;
  }
  return owner->Explain(status);
}

void Registry::UpdateLimits(const std::string& user) {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  found->second->SetLimits(options_.limits_of(user));
  for (runtime::ManagedDevice* device : devices_)
    device->dispatcher().SetWeight(user, found->second->weight);
}

absl::StatusOr<std::shared_ptr<Session>> Registry::Find(const std::string& user,
                                                        const std::string& full_id) const {
  const auto [id, generation] = Split(full_id);
  // Both first: sessions that are listed or restored meanwhile are found below.
  const bool knows_all = absent_ == nullptr || absent_->KnowsAll();
  if (absent_ != nullptr)
    if (absl::Status status = absent_->Ask(user, id); !status.ok()) return status;
  if (std::shared_ptr<Session> found = Lookup(id); found && found->user().name == user) {
    if (absl::Status status = found->CheckOpen(); !status.ok()) return status;
    if (absl::Status status = found->CheckGeneration(generation); !status.ok()) return status;
    return found;
  }
  if (!knows_all) return NotListedYet();
  if (absl::Status why = closed_.Find(id, user); !why.ok()) return why;
  absl::MutexLock lock(&mutex_);
  if (!refusal_.ok()) return refusal_;
  const auto adopted = adopted_.find(id);
  const bool is_ours =
      absl::StartsWith(id, options_.mark) || (adopted != adopted_.end() && adopted->second == user);
  return is_ours || id.size() != options_.mark.size() + kIdSize ? UnknownSession() : LostSession();
}

std::shared_ptr<Session> Registry::Lookup(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

absl::StatusOr<std::shared_ptr<Session>> Registry::FindByName(const std::string& user,
                                                              const std::string& name) const {
  const bool knows_all = absent_ == nullptr || absent_->KnowsAll();
  const int64_t number = names_.Find(user, name);
  if (absent_ != nullptr && number != 0)
    if (absl::Status status = absent_->Ask(number, &user); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    if (!refusal_.ok()) return refusal_;
  }
  for (const std::shared_ptr<Session>& session : List()) {
    if (number == 0 || session->identity().number != number) continue;
    if (absl::Status status = session->CheckOpen(); !status.ok()) return status;
    return session;
  }
  if (!knows_all) return NotListedYet();
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("you have no session named ", Quoted(name),
                                       ": it was never detached, was closed, or has expired")),
      "UNKNOWN_NAME", {{"name", name}});
}

absl::Status Registry::Close(const std::string& id) {
  const std::shared_ptr<Session> session = Lookup(id);
  if (!session) return UnknownSession();
  // The session may be frozen for the next daemon; the client may then ask again.
  if (absl::Status status = session->CheckOpen(); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    if (sessions_.erase(id) == 0) return UnknownSession();
    KILN_VALIDATE(*this, entries());
  }
  session->Close(absl::OkStatus());
  LogClosed(*session, "closed by its client");
  return absl::OkStatus();
}

int Registry::CloseAllOf(const std::string& user, const absl::Status& reason) {
  // First: sessions that are restored meanwhile are closed below.
  const int absent = absent_ == nullptr ? 0 : absent_->CloseAllOf(user);
  std::vector<std::shared_ptr<Session>> closed;
  {
    absl::MutexLock lock(&mutex_);
    for (auto entry = sessions_.begin(); entry != sessions_.end();) {
      const auto current = entry++;
      if (current->second->user().name != user) continue;
      closed.push_back(std::move(current->second));
      sessions_.erase(current);
    }
    KILN_VALIDATE(*this, entries());
  }
  for (const auto& session : closed) {
    session->Close(reason);
    LogClosed(*session, "its user was revoked");
  }
  return absent + static_cast<int>(closed.size());
}

void Registry::CountFrom(int64_t number) {
  absl::MutexLock lock(&mutex_);
  next_number_ = std::max(next_number_, number);
}

absl::StatusOr<std::shared_ptr<Session>> Registry::Make(const SessionIdentity& identity,
                                                        const std::string& user,
                                                        const std::vector<DeviceNeed>& needs) {
  KILN_CHECK(!needs.empty());
  runtime::ManagedDevice* home = nullptr;
  for (const DeviceNeed& need : needs) {
    const auto device = FindDevice(devices_, need.device);
    if (!device.ok()) {
      return absl::UnavailableError(
          absl::StrCat("its device ", Quoted(need.device), " is missing"));
    }
    if (home == nullptr) home = *device;
    // A draining device accepts sessions that it had.
    if (absl::Status status = (*device)->CheckUsable(false); !status.ok()) return status;
    // Before any bytes are read: a session that does not fit is tried again and again.
    if (absl::Status status = CheckMemory(**device, need.bytes); !status.ok()) return status;
  }
  std::shared_ptr<User> owner;
  {
    absl::MutexLock lock(&mutex_);
    owner = UserOf(user);
  }
  auto host =
      options_.services.host->NewAccount(absl::StrCat("session ", identity.name), owner->host);
  memory::Charge charge = host->Open(memory::Use::kSessions);
  charge.ForceResize(kSessionBytes);
  return std::make_shared<Session>(identity, std::move(owner), *home, options_.services,
                                   std::move(host), std::move(charge));
}

void Registry::Adopt(std::shared_ptr<Session> session) {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(session != nullptr);
  const std::string id = session->identity().id;
  adopted_[id] = session->user().name;
  // Only now: before it was complete, requests to it would have waited.
  UserOf(session->user().name)->AddSession(session);
  sessions_[id] = std::move(session);
  KILN_VALIDATE(*this, entries());
}

void Registry::Validate() const {
  for (const auto& [name, user] : users_) {
    KILN_CHECK(user != nullptr) << "user " << name;
    KILN_CHECK_EQ(user->name, name);
  }
  for (const auto& [id, session] : sessions_) {
    KILN_CHECK(session != nullptr);
    const SessionIdentity& identity = session->identity();
    KILN_CHECK(identity.id == id) << identity.name << " is under the id of another session";
    KILN_CHECK_LT(identity.number, next_number_) << identity.name;
    const auto user = users_.find(session->user().name);
    KILN_CHECK(user != users_.end() && user->second.get() == &session->user()) << identity.name;
    const auto adopted = adopted_.find(id);
    if (adopted != adopted_.end()) KILN_CHECK_EQ(adopted->second, session->user().name);
  }
}

std::vector<std::shared_ptr<Session>> Registry::List() const {
  std::vector<std::shared_ptr<Session>> list;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, session] : sessions_) list.push_back(session);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a->identity().number < b->identity().number;
  });
  return list;
}

std::shared_ptr<User> Registry::GetUser(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  return UserOf(name);
}

std::vector<std::shared_ptr<User>> Registry::ListUsers() const {
  std::vector<std::shared_ptr<User>> list;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, user] : users_) list.push_back(user);
  return list;
}

int Registry::CloseExpired() {
  std::vector<std::shared_ptr<Session>> expired = List();
  std::erase_if(expired, [](const auto& session) { return !session->HasExpired(); });
  {
    absl::MutexLock lock(&mutex_);
    // Another thread may have closed one meanwhile.
    std::erase_if(expired, [this](const auto& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return sessions_.erase(session->identity().id) == 0;
    });
    KILN_VALIDATE(*this, entries());
  }
  for (const auto& session : expired) {
    session->Close(UnknownSession());
    LogClosed(*session, "lease expired");
  }
  return static_cast<int>(expired.size());
}

void Registry::Refuse(const absl::Status& reason) {
  absl::MutexLock lock(&mutex_);
  refusal_ = reason;
}

void Registry::CloseAll(const absl::Status& reason) {
  // Closed without the lock, because closing calls waiters of the session.
  std::map<std::string, std::shared_ptr<Session>> all;
  {
    absl::MutexLock lock(&mutex_);
    all.swap(sessions_);
  }
  for (const auto& [id, session] : all) session->Close(reason);
}

}  // namespace kiln::sessions
