#include "server/rpc/services/services.h"

#include <utility>

#include "server/errors/errors.h"
#include "server/rpc/messages/status.h"

namespace kiln::rpc {
namespace {

bool IsSmall(const google::protobuf::Message& answer) {
  return static_cast<int64_t>(answer.ByteSizeLong()) <= kSmallAnswer;
}

}  // namespace

grpc::Status End(const DaemonView& daemon, const absl::Status& status) {
  if (!status.ok()) daemon.metrics->Failed(status.code());
  return ToGrpc(status);
}

grpc::ServerUnaryReactor* Reply(const DaemonView& daemon, grpc::CallbackServerContext* context,
                                const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(End(daemon, status));
  return reactor;
}

grpc::ServerUnaryReactor* ReplyCharged(const DaemonView& daemon,
                                       grpc::CallbackServerContext* context,
                                       const auth::Principal& caller, const absl::Status& status,
                                       google::protobuf::Message* response) {
  if (!status.ok() || IsSmall(*response)) return Reply(daemon, context, status);
  const std::shared_ptr<sessions::User> user = daemon.registry->GetUser(caller.user);
  auto* const reactor = new ChargedReactor(daemon, user->host->Open(memory::Use::kTransfers));
  reactor->Answer(daemon, *user, status, response);
  return reactor;
}

void ChargedReactor::Answer(const DaemonView& daemon, const sessions::User& user,
                            absl::Status status, google::protobuf::Message* response) {
  if (status.ok() && !IsSmall(*response)) {
    // The message, and its copy in gRPC.
    status = charge_.Resize(charge_.bytes() + 2 * static_cast<int64_t>(response->ByteSizeLong()));
    if (!status.ok()) {
      response->Clear();
      status = user.Explain(status);
    }
  }
  Finish(End(daemon, status));
}

absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(
    const DaemonView& daemon, const absl::StatusOr<auth::Principal>& caller,
    const std::string& id) {
  if (!caller.ok()) return caller.status();
  auto session = daemon.registry->Find(caller->user, id);
  if (session.ok()) (*session)->Renew();
  return session;
}

std::vector<std::shared_ptr<sessions::Session>> VisibleSessions(const DaemonView& daemon,
                                                                const auth::Principal& caller) {
  auto sessions = daemon.registry->List();
  if (caller.sees_all()) return sessions;
  std::erase_if(sessions, [&](const auto& session) { return session->user().name != caller.user; });
  return sessions;
}

std::vector<std::shared_ptr<runtime::Program>> VisiblePrograms(const DaemonView& daemon,
                                                               const auth::Principal& caller) {
  auto programs = daemon.programs->List();
  std::erase_if(programs, [&](const auto& program) {
    return caller.sees_all() ? !program->has_users() : !program->UseBy(caller.user);
  });
  return programs;
}

void Audit(const DaemonView& daemon, const auth::Principal& caller, const std::string& action,
           const std::string& subject, const absl::Status& outcome) {
  daemon.audit->Append({0, daemon.clock.wall(), caller.user, action, subject,
                        outcome.ok() ? "ok" : errors::Reason(outcome)});
}

}  // namespace kiln::rpc
