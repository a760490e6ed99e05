#include "server/rpc/services/services.h"

#include <utility>

#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/status.h"

namespace kiln::rpc {
namespace {

bool IsSmall(const google::protobuf::Message& answer) {
  return static_cast<int64_t>(answer.ByteSizeLong()) <= kSmallAnswer;
}

}  // namespace

grpc::Status End(const ServiceParts& parts, const absl::Status& status) {
  if (!status.ok()) parts.metrics->Failed(status.code());
  return ToGrpc(status);
}

grpc::ServerUnaryReactor* Reply(const ServiceParts& parts, grpc::CallbackServerContext* context,
                                const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(End(parts, status));
  return reactor;
}

grpc::ServerUnaryReactor* ReplyCharged(const ServiceParts& parts,
                                       grpc::CallbackServerContext* context,
                                       const auth::Principal& caller, const absl::Status& status,
                                       google::protobuf::Message* response) {
  if (!status.ok() || IsSmall(*response)) return Reply(parts, context, status);
  const std::shared_ptr<sessions::User> user = parts.registry->GetUser(caller.user);
  auto* const reactor = new ChargedReactor(parts, user->host->Open(memory::Use::kTransfers));
  reactor->Answer(parts, *user, status, response);
  return reactor;
}

void ChargedReactor::Answer(const ServiceParts& parts, const sessions::User& user,
                            absl::Status status, google::protobuf::Message* response) {
  const bool is_answered = is_answered_.exchange(true);
  KILN_CHECK(!is_answered) << "a call is answered twice";
  if (status.ok() && !IsSmall(*response)) {
    // The message, and its copy in gRPC.
    status = charge_.Resize(charge_.bytes() + 2 * static_cast<int64_t>(response->ByteSizeLong()));
    if (!status.ok()) {
      response->Clear();
      status = user.Explain(status);
    }
  }
  Finish(End(parts, status));
}

absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(
    const ServiceParts& parts, const absl::StatusOr<auth::Principal>& caller,
    const std::string& id) {
  if (!caller.ok()) return caller.status();
  auto session = parts.registry->Find(caller->user, id);
  if (session.ok()) (*session)->RenewLease();
  return session;
}

std::vector<std::shared_ptr<sessions::Session>> VisibleSessions(const ServiceParts& parts,
                                                                const auth::Principal& caller) {
  auto sessions = parts.registry->List();
  if (caller.sees_all()) return sessions;
  std::erase_if(sessions, [&](const auto& session) { return session->user().name != caller.user; });
  return sessions;
}

void Audit(auth::AuditLog& log, const Clock& clock, const auth::Principal& caller,
           const std::string& action, const std::string& subject, const absl::Status& outcome) {
  log.Append({0, clock.wall(), caller.user, action, subject,
              outcome.ok() ? "ok" : errors::Reason(outcome)});
}

}  // namespace kiln::rpc
