#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "kiln/v1/session.grpc.pb.h"
#include "server/log/rate_limit.h"
#include "server/rpc/messages/placement.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/connect_stream.h"
#include "server/rpc/services/services.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

sessions::ClientInfo FromProto(const v1::ClientInfo& proto) {
  sessions::ClientInfo client;
  // Lists of sessions show these to other users, so their length is bounded.
  client.name = std::string(Shortened(proto.name(), 100));
  client.version = std::string(Shortened(proto.version(), 100));
  client.description = std::string(Shortened(proto.description(), 200));
  client.op_set_version = proto.op_set_version();
  return client;
}

fairness::Priority FromProto(v1::Priority priority) {
  return priority == v1::BATCH ? fairness::Priority::kBatch : fairness::Priority::kInteractive;
}

void Fill(const sessions::Session& session, v1::Session* proto) {
  const sessions::SessionIdentity& identity = session.identity();
  const sessions::SessionStats now = session.GetStats();
  proto->set_name(identity.name);
  proto->set_user(session.user().name);
  proto->mutable_client()->set_name(identity.client.name);
  proto->mutable_client()->set_version(identity.client.version);
  proto->mutable_client()->set_description(identity.client.description);
  proto->mutable_client()->set_op_set_version(identity.client.op_set_version);
  proto->set_device(session.device().name());
  *proto->mutable_opened() = ToProto(identity.opened);
  *proto->mutable_expires() = ToProto(now.expires);
  proto->set_connected(now.connected);
  proto->set_memory_bytes(static_cast<uint64_t>(now.memory_bytes));
  proto->set_buffers(static_cast<uint64_t>(now.buffers));
  proto->set_programs(static_cast<uint64_t>(now.programs));
  proto->set_runs(static_cast<uint64_t>(now.runs));
  proto->set_device_seconds(now.device_seconds);
  const bool is_batch = identity.priority == fairness::Priority::kBatch;
  proto->set_priority(is_batch ? v1::BATCH : v1::INTERACTIVE);
  proto->set_detached_name(now.parked_name);
  proto->set_snapshot_seconds(
      static_cast<uint32_t>(absl::ToInt64Seconds(identity.checkpoint_interval)));
  if (now.checkpoint_time != absl::InfinitePast())
    *proto->mutable_snapshot_taken() = ToProto(now.checkpoint_time);
}

void Fill(const SessionServiceParts& parts, const sessions::Session& session,
          v1::OpenSessionResponse* response) {
  const sessions::SessionIdentity& identity = session.identity();
  response->set_session_id(identity.id);
  response->set_name(identity.name);
  response->set_lease_seconds(static_cast<uint32_t>(absl::ToInt64Seconds(identity.lease)));
  response->set_device(session.device().name());
  response->set_daemon_version(parts.version);
  response->set_op_set_version(parts.op_set_version);
  response->set_max_message_bytes(kMessageBytesMax);
  response->set_chunk_bytes(kChunkBytes);
}

void Fill(const sessions::Takeover& takeover, v1::AttachSessionResponse* response) {
  response->mutable_session()->set_session_id(takeover.id);
  response->set_last_sequence(takeover.last_sequence);
  response->set_last_handle(takeover.last_handle);
  response->set_last_program(takeover.last_program);
  for (const auto& [named, type, placement, device] : takeover.tensors) {
    v1::NamedTensor* tensor = response->add_tensors();
    tensor->set_name(named.name);
    tensor->set_handle(named.handle);
    tensor->set_dtype(static_cast<v1::DType>(type.dtype));
    tensor->mutable_shape()->Assign(type.shape.begin(), type.shape.end());
    if (placement) {
      *tensor->mutable_placement() = PlacementToProto(*placement);
    } else if (!device.empty()) {
      tensor->mutable_placement()->add_devices(device);
    }
  }
}

// Connect receives raw bytes, see messages/message.h.
using SessionMethods = v1::SessionService::WithCallbackMethod_OpenSession<
    v1::SessionService::WithCallbackMethod_RenewSession<
        v1::SessionService::WithCallbackMethod_CloseSession<
            v1::SessionService::WithCallbackMethod_EndSession<
                v1::SessionService::WithCallbackMethod_ListSessions<
                    v1::SessionService::WithCallbackMethod_AttachSession<
                        v1::SessionService::WithRawCallbackMethod_Connect<
                            v1::SessionService::Service>>>>>>>;

class SessionService final : public SessionMethods {
 public:
  explicit SessionService(const SessionServiceParts& parts) : parts_(parts) {
    const auto bound = [this](const char* name, auto method) {
      MarkMethodCallback(MethodIndex(v1::SessionService::service_full_name(), name),
                         Bounded(parts_, this, method));
    };
    bound("OpenSession", &SessionService::OpenSession);
    bound("AttachSession", &SessionService::AttachSession);
    bound("RenewSession", &SessionService::RenewSession);
    bound("CloseSession", &SessionService::CloseSession);
    bound("EndSession", &SessionService::EndSession);
    bound("ListSessions", &SessionService::ListSessions);
  }

  ServerUnaryReactor* OpenSession(CallbackServerContext* context,
                                  const v1::OpenSessionRequest* request,
                                  v1::OpenSessionResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    sessions::ClientInfo client = FromProto(request->client());
    client.is_local = caller->how == "socket";
    auto session = parts_.registry->Open(
        caller->user, std::move(client), absl::Seconds(request->lease_seconds()), request->device(),
        FromProto(request->priority()), absl::Seconds(request->snapshot_seconds()));
    // The user was revoked meanwhile, after the revocation had closed the existing sessions.
    if (const auto still = parts_.access->Caller(*context); session.ok() && !still.ok()) {
      parts_.registry->Close((*session)->identity().id).IgnoreError();
      session = still.status();
    }
    if (session.ok()) Fill(parts_, **session, response);
    return Reply(parts_, context, session.status());
  }

  ServerUnaryReactor* AttachSession(CallbackServerContext* context,
                                    const v1::AttachSessionRequest* request,
                                    v1::AttachSessionResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto session = parts_.registry->FindByName(caller->user, request->name());
    if (!session.ok()) return Reply(parts_, context, session.status());
    const auto takeover = (*session)->TakeOver();
    if (takeover.ok()) {
      Fill(parts_, **session, response->mutable_session());
      Fill(*takeover, response);
    }
    return ReplyCharged(parts_, context, *caller, takeover.status(), response);
  }

  ServerUnaryReactor* RenewSession(CallbackServerContext* context,
                                   const v1::RenewSessionRequest* request,
                                   v1::RenewSessionResponse* response) override {
    auto session = FindSession(parts_, parts_.access->Caller(*context), request->session_id());
    if (session.ok()) *response->mutable_expires() = ToProto((*session)->GetStats().expires);
    return Reply(parts_, context, session.status());
  }

  ServerUnaryReactor* CloseSession(CallbackServerContext* context,
                                   const v1::CloseSessionRequest* request,
                                   v1::CloseSessionResponse* response) override {
    auto session = FindSession(parts_, parts_.access->Caller(*context), request->session_id());
    return Reply(
        parts_, context,
        session.ok() ? parts_.registry->Close((*session)->identity().id) : session.status());
  }

  // Closes a session by its name; CloseSession closes one by its id.
  ServerUnaryReactor* EndSession(CallbackServerContext* context,
                                 const v1::EndSessionRequest* request,
                                 v1::EndSessionResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto session = parts_.registry->CloseByName(
        caller->user, caller->role == auth::Role::kAdmin, request->name());
    std::string subject = request->name();
    if (session.ok()) {
      response->set_name((*session)->identity().name);
      response->set_user((*session)->user().name);
      subject = absl::StrCat(response->name(), " of ", response->user());
    }
    AuditClose(*caller, subject, session.status());
    return Reply(parts_, context, session.status());
  }

  ServerUnaryReactor* ListSessions(CallbackServerContext* context,
                                   const v1::ListSessionsRequest* request,
                                   v1::ListSessionsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    for (const auto& session : VisibleSessions(parts_, *caller))
      Fill(*session, response->add_sessions());
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Connect(
      CallbackServerContext* context) override {
    return ConnectStream::Start(parts_, parts_.access->Caller(*context));
  }

 private:
  // Users may close their own sessions at any rate, which must not push everything else out of the
  // log.
  void AuditClose(const auth::Principal& caller, const std::string& subject,
                  const absl::Status& outcome) {
    if (caller.role != auth::Role::kAdmin) {
      absl::MutexLock lock(&mutex_);
      if (!users_closes_.Admit(parts_.clock.steady())) return;
    }
    Audit(*parts_.audit, parts_.clock, caller, "close_session", subject, outcome);
  }

  const SessionServiceParts& parts_;
  absl::Mutex mutex_;
  log::RateLimit users_closes_ ABSL_GUARDED_BY(mutex_){30, absl::Minutes(1)};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSessionService(const SessionServiceParts& parts) {
  return std::make_unique<SessionService>(parts);
}

}  // namespace kiln::rpc
