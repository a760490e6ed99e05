#include "server/sessions/user.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

using quota::Resource;

// Bounds the cost of each refusal for a user who is refused again and again.
constexpr size_t kSessionsAskedMax = 16;

}  // namespace

User::User(std::string name, std::shared_ptr<memory::Account> host,
           const std::vector<std::string>& device_names)
    : name(std::move(name)),
      host(std::move(host)),
      account(std::make_shared<buffers::Account>(nullptr, quota::Scope{},
                                                 quota::Scope{this->name, Resource::kBuffers})),
      programs({this->name, Resource::kPrograms}),
      operations({this->name, Resource::kOperations}),
      uploads({this->name, Resource::kUploads}),
      upload_bytes({this->name, Resource::kUploadBytes}),
      graph_nodes({this->name, Resource::kGraphNodes}),
      sessions({this->name, Resource::kSessions}),
      disk({this->name, Resource::kDisk}) {
  KILN_CHECK(this->host != nullptr);
  for (const std::string& device : device_names) {
    devices[device].account = std::make_shared<buffers::Account>(
        account, quota::Scope{this->name, Resource::kDeviceMemory, device});
  }
}

void User::SetLimits(const quota::Limits& limits) {
  host->SetLimit(limits[Resource::kHostMemory]);
  account->SetLimits(0, limits[Resource::kBuffers]);
  for (const auto& [device, use] : devices)
    use.account->SetLimits(limits[Resource::kDeviceMemory], 0);
  programs.SetLimit(limits[Resource::kPrograms]);
  operations.SetLimit(limits[Resource::kOperations]);
  uploads.SetLimit(limits[Resource::kUploads]);
  graph_nodes.SetLimit(limits[Resource::kGraphNodes]);
  sessions.SetLimit(limits[Resource::kSessions]);
  upload_bytes.SetLimit(limits[Resource::kUploadBytes]);
  disk.SetLimit(limits[Resource::kDisk]);
  const int64_t share = std::clamp<int64_t>(limits[Resource::kWeight], 1, quota::kWeightMax);
  weight = static_cast<double>(share) / quota::kUsualWeight;
}

std::vector<User::Use> User::GetUses() const {
  std::vector<Use> uses = {{Resource::kHostMemory, "", host->bytes(), host->limit()}};
  for (const auto& [device, use] : devices) {
    uses.push_back(
        {Resource::kDeviceMemory, device, use.account->bytes(), use.account->bytes_limit()});
  }
  uses.push_back(
      {Resource::kSessions, "", static_cast<int64_t>(ListSessions().size()), sessions.limit()});
  uses.push_back({Resource::kBuffers, "", account->buffers(), account->buffers_limit()});
  for (const quota::Meter* meter :
       {&programs, &operations, &graph_nodes, &uploads, &upload_bytes.meter(), &disk})
    uses.push_back({meter->scope().resource, "", meter->used(), meter->limit()});
  uses.push_back({Resource::kWeight, "", 0, std::llround(weight * quota::kUsualWeight)});
  return uses;
}

void User::AddSession(const std::shared_ptr<Session>& session) {
  KILN_CHECK(session != nullptr && &session->user() == this);
  absl::MutexLock lock(&mutex_);
  std::erase_if(sessions_, [](const auto& known) { return known.expired(); });
  sessions_.push_back(session);
  KILN_VALIDATE(*this, sessions_.size());
}

void User::Validate() const {
  // Weak pointers are not locked: the last pointer to a session must not end here, with the lock
  // held.
  std::set<std::weak_ptr<Session>, std::owner_less<>> seen;
  for (const auto& session : sessions_) {
    const bool is_new = seen.insert(session).second;
    KILN_CHECK(is_new) << "user " << name << " has a session twice";
  }
}

std::vector<std::shared_ptr<Session>> User::ListSessions() const {
  std::vector<std::shared_ptr<Session>> list;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& known : sessions_)
      if (auto session = known.lock()) list.push_back(std::move(session));
  }
  // Without the lock, because this takes the lock of each session.
  std::erase_if(list, [](const auto& session) { return session->is_closed(); });
  return list;
}

absl::Status User::Explain(const absl::Status& status) const {
  const auto scope = quota::Unexplained(status);
  if (!scope || scope->user != name) return status;
  auto sessions = ListSessions();
  if (sessions.size() > kSessionsAskedMax) sessions.resize(kSessionsAskedMax);
  std::vector<quota::Holder> holders;
  for (const auto& session : sessions) {
    if (!scope->device.empty() && session->device().name() != scope->device) continue;
    for (quota::Holder& holder : session->HoldersOf(scope->resource))
      holders.push_back(std::move(holder));
  }
  return quota::WithHolders(status, scope->resource, std::move(holders));
}

}  // namespace kiln::sessions
