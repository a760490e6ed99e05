#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/answers.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/quotas.h"
#include "server/rpc/services/services.h"
#include "server/rpc/services/watch.h"
#include "server/runtime/cache/fair_pool.h"
#include "server/sessions/usage.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr absl::Duration kAuditInterval = absl::Milliseconds(200);
constexpr int kEventsAtOnce = 100;

void Fill(const auth::StoredUser& user, v1::User* proto) {
  proto->set_name(user.name);
  proto->set_role(std::string(auth::Name(user.role)));
  if (!user.tokens.empty()) proto->set_token_id(user.tokens.back().id);
  for (const auth::StoredToken& token : user.tokens) {
    v1::Token* filled = proto->add_tokens();
    filled->set_id(token.id);
    *filled->mutable_created() = ToProto(token.created);
    if (token.expires) *filled->mutable_expires() = ToProto(*token.expires);
  }
  for (const std::string& identity : user.identities.names()) proto->add_identities(identity);
  *proto->mutable_created() = ToProto(user.created);
  if (user.revoked) *proto->mutable_revoked() = ToProto(*user.revoked);
}

void AddUse(const sessions::Usage& usage, v1::User* user) {
  v1::DeviceUse* use = user->add_devices();
  use->set_device(usage.device);
  use->set_device_seconds(usage.device_seconds);
  use->set_runs(static_cast<uint64_t>(usage.runs));
  use->set_sessions(static_cast<uint32_t>(usage.sessions));
  use->set_memory_bytes(static_cast<uint64_t>(usage.memory_bytes));
  use->set_programs(static_cast<uint32_t>(usage.programs));
  use->set_waiting(static_cast<uint64_t>(usage.waiting));
  user->set_device_seconds(user->device_seconds() + use->device_seconds());
}

absl::StatusOr<auth::Role> RoleOf(const std::string& name) {
  if (name.empty()) return auth::Role::kUser;
  if (const auto role = auth::ParseRole(name)) return *role;
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is not a role; use one of ",
                                              absl::StrJoin(auth::kRoleNames, ", "))),
      "UNKNOWN_ROLE", {{"role", name}});
}

// The longest validity of a token; keeps its end representable as a time.
constexpr uint64_t kValidSecondsMax = uint64_t{100} * 366 * 24 * 3600;

absl::Status CheckValidSeconds(uint64_t seconds) {
  if (seconds <= kValidSecondsMax) return absl::OkStatus();
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "a token can be valid for at most ", kValidSecondsMax,
                                " seconds, or without end (0); ", seconds, " is too long")),
                            "TOKEN_TIME");
}

absl::Status AsksWhoCalls() {
  return errors::WithReason(
      absl::UnauthenticatedError("the daemon has users now and requires a token, which an admin "
                                 "makes with `kiln user add NAME`"),
      "NO_TOKEN");
}

// Streams events of the log, one in each message.
class AuditWatch : public Watch<v1::AuditEvent> {
 public:
  AuditWatch(const AdminServiceParts& parts, const grpc::CallbackServerContext& context,
             const v1::ListAuditEventsRequest& request)
      : Watch(kAuditInterval, /*at_once=*/true),
        parts_(parts),
        context_(context),
        since_(request.has_since() ? FromProto(request.since()) : absl::InfinitePast()),
        follow_(request.follow()) {
    Look();
  }

 private:
  Next Fill(v1::AuditEvent* event, grpc::Status* end) override {
    // Checked each time, since the caller may be revoked.
    const auto caller = parts_.access->Caller(context_);
    if (!caller.ok() || caller->role != auth::Role::kAdmin) {
      *end = rpc::End(parts_, caller.ok() ? absl::PermissionDeniedError("the role has changed")
                                          : caller.status());
      return Next::kEnd;
    }
    if (waiting_.empty()) {
      const auto events = parts_.audit->Read(last_, since_, kEventsAtOnce);
      waiting_.assign(events.begin(), events.end());
    }
    if (waiting_.empty()) return follow_ ? Next::kWait : Next::kEnd;
    const auth::AuditEvent& next = waiting_.front();
    last_ = next.number;
    *event->mutable_time() = ToProto(next.time);
    event->set_user(next.user);
    event->set_action(next.action);
    event->set_subject(next.subject);
    event->set_outcome(next.outcome);
    waiting_.pop_front();
    return Next::kSend;
  }

  const AdminServiceParts& parts_;
  const grpc::CallbackServerContext& context_;
  const absl::Time since_;
  const bool follow_;
  int64_t last_ = 0;
  std::deque<auth::AuditEvent> waiting_;
};

double WeightOf(const AdminServiceParts& parts, const std::string& user) {
  const quota::Limits limits = parts.limits->LimitsOf(user);
  const int64_t weight = limits[quota::Resource::kWeight];
  return static_cast<double>(weight > 0 ? weight : quota::kUsualWeight) / quota::kUsualWeight;
}

// For each user.
constexpr size_t kSlowCallsWaitingMax = 64;

absl::Status TooManySlowCalls() {
  return errors::WithReason(
      absl::ResourceExhaustedError(
          absl::StrCat(kSlowCallsWaitingMax,
                       " of your calls are waiting already; try again when some are answered")),
      "TOO_MANY_CALLS", {{"limit", absl::StrCat(kSlowCallsWaitingMax)}});
}

class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(const AdminServiceParts& parts) : parts_(parts) {
    const auto bound = [this](const char* name, auto method) {
      MarkMethodCallback(MethodIndex(v1::AdminService::service_full_name(), name),
                         Bounded(parts_, this, method));
    };
    bound("GetDaemon", &AdminService::GetDaemon);
    bound("Drain", &AdminService::Drain);
    bound("GetCache", &AdminService::GetCache);
    bound("ClearCache", &AdminService::ClearCache);
    bound("ExportSettings", &AdminService::ExportSettings);
    bound("ImportSettings", &AdminService::ImportSettings);
    bound("AddUser", &AdminService::AddUser);
    bound("RevokeUser", &AdminService::RevokeUser);
    bound("AddToken", &AdminService::AddToken);
    bound("RevokeToken", &AdminService::RevokeToken);
    bound("ListUsers", &AdminService::ListUsers);
    bound("SetQuota", &AdminService::SetQuota);
    bound("ListQuotas", &AdminService::ListQuotas);
    bound("ListAuditEvents", &AdminService::ListAuditEvents);
  }

  ServerUnaryReactor* GetDaemon(CallbackServerContext* context, const v1::GetDaemonRequest* request,
                                v1::GetDaemonResponse* response) override {
    response->set_version(parts_.version);
    *response->mutable_started() = ToProto(parts_.started);
    response->set_op_set_version(parts_.op_set_version);
    for (const std::string& address : parts_.listening()) response->add_listening(address);
    response->set_cache_path(parts_.kernel_cache->GetStatistics().path);
    // The daemon is draining when no device takes new work.
    bool draining = true;
    for (runtime::ManagedDevice* device : parts_.devices) {
      draining = draining && device->health() != runtime::Health::kHealthy;
    }
    response->set_draining(draining);
    return Reply(parts_, context, absl::OkStatus());
  }

  ServerUnaryReactor* Drain(CallbackServerContext* context, const v1::DrainRequest* request,
                            v1::DrainResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    if (request->stop()) return Audited(context, *caller, "stop", "", Stop(*request));
    // An empty name means all devices.
    bool found = request->device().empty();
    for (runtime::ManagedDevice* device : parts_.devices) {
      if (!request->device().empty() && device->name() != request->device()) continue;
      found = true;
      device->SetDraining(!request->undo());
    }
    absl::Status status;
    if (!found) {
      status = errors::WithReason(
          absl::NotFoundError(absl::StrCat("there is no device ", Quoted(request->device()))),
          "UNKNOWN_DEVICE", {{"device", request->device()}});
    }
    return Audited(context, *caller, request->undo() ? "undo_drain" : "drain", request->device(),
                   status);
  }

  ServerUnaryReactor* GetCache(CallbackServerContext* context, const v1::GetCacheRequest* request,
                               v1::GetCacheResponse* response) override {
    const cache::KernelCache::Statistics statistics = parts_.kernel_cache->GetStatistics();
    response->set_path(statistics.path);
    response->set_kernels(static_cast<uint64_t>(statistics.kernels));
    response->set_bytes(static_cast<uint64_t>(statistics.bytes));
    response->set_hits(static_cast<uint64_t>(statistics.hits));
    response->set_misses(static_cast<uint64_t>(statistics.misses));
    return Reply(parts_, context, absl::OkStatus());
  }

  ServerUnaryReactor* ClearCache(CallbackServerContext* context,
                                 const v1::ClearCacheRequest* request,
                                 v1::ClearCacheResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto deleted = parts_.kernel_cache->Clear();
    if (deleted.ok()) response->set_kernels_deleted(static_cast<uint64_t>(*deleted));
    return Audited(context, *caller, "clear_cache", "", deleted.status());
  }

  ServerUnaryReactor* ExportSettings(CallbackServerContext* context,
                                     const v1::ExportSettingsRequest* request,
                                     v1::ExportSettingsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    return Later(context, *caller, 0, response, [=, this, caller = *caller]() -> absl::Status {
      // The settings and their text. Not on gRPC's thread: it reads the table.
      const int64_t bytes = 2 * parts_.settings->GetStatistics().bytes;
      const std::shared_ptr<sessions::User> user = parts_.registry->GetUser(caller.user);
      const auto charge = user->host->Reserve(memory::Use::kTransfers, bytes);
      if (!charge.ok()) return user->Explain(charge.status());
      auto exported = parts_.settings->Export();
      Audit(*parts_.audit, parts_.clock, caller, "export_settings", "", exported.status());
      if (!exported.ok()) return exported.status();
      response->set_settings(static_cast<uint32_t>(exported->settings));
      response->set_text(std::move(exported->text));
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* ImportSettings(CallbackServerContext* context,
                                     const v1::ImportSettingsRequest* request,
                                     v1::ImportSettingsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    // As received, parsed, and its settings.
    const int64_t bytes = 3 * static_cast<int64_t>(request->ByteSizeLong());
    return Later(context, *caller, bytes, response, [this, caller = *caller, request, response] {
      const absl::Status status = Import(*request, response);
      Audit(*parts_.audit, parts_.clock, caller, "import_settings", "", status);
      return status;
    });
  }

  ServerUnaryReactor* AddUser(CallbackServerContext* context, const v1::AddUserRequest* request,
                              v1::AddUserResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto role = RoleOf(request->role());
    const auto identities =
        auth::ParseIdentities({request->identities().begin(), request->identities().end()});
    absl::Status status = role.status();
    if (status.ok()) status = identities.status();
    if (status.ok()) {
      auto token = parts_.users->AddUser(request->name(), *role, *identities);
      status = token.status();
      if (status.ok()) response->set_token(*std::move(token));
    }
    // Once there is a user, no one may continue without authentication.
    if (status.ok()) parts_.registry->CloseAllOf(auth::kLocalUser, AsksWhoCalls());
    const auto user = parts_.users->store().Find(request->name());
    if (status.ok() && user) Fill(*user, response->mutable_user());
    return Audited(context, *caller, "add_user",
                   absl::StrCat(request->name(),
                                role.ok() ? absl::StrCat(" ", auth::Name(*role)) : std::string()),
                   status);
  }

  ServerUnaryReactor* RevokeUser(CallbackServerContext* context,
                                 const v1::RevokeUserRequest* request,
                                 v1::RevokeUserResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const absl::Status status = parts_.users->RevokeUser(request->name());
    if (status.ok()) {
      response->set_sessions_closed(static_cast<uint32_t>(parts_.registry->CloseAllOf(
          request->name(),
          errors::WithReason(absl::UnauthenticatedError("this user was revoked by an admin"),
                             "REVOKED"))));
      // Last, when none of the user's sessions requests programs any more.
      for (const auto& program : parts_.programs->List()) program->ForgetUser(request->name());
    }
    return Audited(context, *caller, "revoke_user", request->name(), status);
  }

  ServerUnaryReactor* AddToken(CallbackServerContext* context, const v1::AddTokenRequest* request,
                               v1::AddTokenResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    absl::Status status = CheckValidSeconds(request->valid_seconds());
    if (status.ok()) {
      auto token = parts_.users->AddToken(
          request->user(), request->valid_seconds() == 0
                               ? absl::InfiniteDuration()
                               : absl::Seconds(static_cast<int64_t>(request->valid_seconds())));
      status = token.status();
      if (status.ok()) response->set_token(*std::move(token));
    }
    const auto user = parts_.users->store().Find(request->user());
    if (status.ok() && user) Fill(*user, response->mutable_user());
    return Audited(context, *caller, "add_token", request->user(), status);
  }

  ServerUnaryReactor* RevokeToken(CallbackServerContext* context,
                                  const v1::RevokeTokenRequest* request,
                                  v1::RevokeTokenResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto name = parts_.users->RevokeToken(request->token_id());
    const auto user = name.ok() ? parts_.users->store().Find(*name) : std::nullopt;
    if (user) Fill(*user, response->mutable_user());
    return Audited(context, *caller, "revoke_token",
                   absl::StrCat(name.ok() ? *name + " " : "", request->token_id()), name.status());
  }

  ServerUnaryReactor* ListUsers(CallbackServerContext* context, const v1::ListUsersRequest* request,
                                v1::ListUsersResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    rpc::ListUsers(parts_, *caller, response);
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  ServerUnaryReactor* SetQuota(CallbackServerContext* context, const v1::SetQuotaRequest* request,
                               v1::SetQuotaResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const absl::Status status = SetLimits(parts_, *request);
    if (status.ok()) Fill(parts_, request->user(), response->mutable_user());
    return Audited(context, *caller, "set_quota", ChangesText(*request), status);
  }

  ServerUnaryReactor* ListQuotas(CallbackServerContext* context,
                                 const v1::ListQuotasRequest* request,
                                 v1::ListQuotasResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    for (const std::string& user : UsersWithQuotas(parts_)) {
      if (caller->sees_all() || user == caller->user) Fill(parts_, user, response->add_users());
    }
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  grpc::ServerWriteReactor<v1::AuditEvent>* ListAuditEvents(
      CallbackServerContext* context, const v1::ListAuditEventsRequest* request) override {
    return new AuditWatch(parts_, *context, *request);
  }

 private:
  absl::Status Stop(const v1::DrainRequest& request) {
    if (request.device().empty() && !request.undo()) return parts_.stop();
    return errors::WithReason(
        absl::InvalidArgumentError(
            "`stop` applies to the whole daemon; do not set `device` or `undo`"),
        "STOP_WITH_DEVICE");
  }
  absl::Status Import(const v1::ImportSettingsRequest& request,
                      v1::ImportSettingsResponse* response) {
    const auto imported = parts_.settings->Import(request.text());
    if (absl::IsInvalidArgument(imported.status()))
      return errors::WithReason(imported.status(), "BAD_SETTINGS");
    // Some may have been stored before a failure.
    parts_.programs->DropOutdated();
    if (!imported.ok()) return imported.status();
    response->set_added(static_cast<uint32_t>(imported->added));
    response->set_replaced(static_cast<uint32_t>(imported->replaced));
    response->set_kept(static_cast<uint32_t>(imported->kept));
    response->set_dropped(static_cast<uint32_t>(imported->dropped));
    return absl::OkStatus();
  }
  // Answers a call with the result of `work`, which a thread of slow_calls executes. `bytes` are
  // charged to the caller's user until then, and the response until it is read.
  ServerUnaryReactor* Later(CallbackServerContext* context, const auth::Principal& caller,
                            int64_t bytes, google::protobuf::Message* response,
                            std::function<absl::Status()> work) {
    const std::shared_ptr<sessions::User> user = parts_.registry->GetUser(caller.user);
    memory::Charge charge = user->host->Open(memory::Use::kTransfers);
    if (absl::Status status = charge.Resize(bytes); !status.ok())
      return Reply(parts_, context, user->Explain(status));
    auto* const reactor = new ChargedReactor(parts_, std::move(charge));
    const bool is_queued = parts_.slow_calls->TrySchedule(
        user->host->user(), kSlowCallsWaitingMax,
        [this, reactor, user, response, work = std::move(work)] {
          const absl::Status done =
              reactor->is_unwanted() ? absl::CancelledError("the client disconnected") : work();
          reactor->Answer(parts_, *user, done, response);
        });
    if (!is_queued) reactor->Answer(parts_, *user, TooManySlowCalls(), response);
    return reactor;
  }
  // Ends a call with an effect on others, and audits it. `caller` is the principal at the begin of
  // the call, since callers who revoke themselves have none at its end.
  ServerUnaryReactor* Audited(CallbackServerContext* context, const auth::Principal& caller,
                              const std::string& action, const std::string& subject,
                              const absl::Status& status) {
    Audit(*parts_.audit, parts_.clock, caller, action, subject, status);
    return Reply(parts_, context, status);
  }

  const AdminServiceParts& parts_;
};

}  // namespace

void ListUsers(const AdminServiceParts& parts, const auth::Principal& caller,
               v1::ListUsersResponse* response) {
  std::map<std::string, v1::User> users;
  for (const auth::StoredUser& user : parts.users->store().List()) Fill(user, &users[user.name]);
  for (const auto& user : parts.registry->ListUsers()) {
    v1::User* proto = &users[user->name];
    proto->set_name(user->name);
    proto->set_weight(user->weight);
    proto->set_memory_bytes(static_cast<uint64_t>(user->account->bytes()));
  }
  for (const sessions::Usage& usage : sessions::ListUsage(*parts.registry))
    AddUse(usage, &users[usage.user]);
  for (auto& [name, user] : users) {
    // For a user without sessions: the share they will have.
    if (user.weight() == 0) user.set_weight(WeightOf(parts, name));
    if (caller.sees_all() || name == caller.user) *response->add_users() = std::move(user);
  }
}

std::unique_ptr<grpc::Service> MakeAdminService(const AdminServiceParts& parts) {
  return std::make_unique<AdminService>(parts);
}

}  // namespace kiln::rpc
