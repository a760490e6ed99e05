#include "server/rpc/services.h"

#include "server/rpc/status.h"

namespace kiln::rpc {

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

absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(const DaemonView& daemon,
                                                               const std::string& id) {
  auto session = daemon.registry->Find(id);
  if (session.ok()) (*session)->Renew();
  return session;
}

}  // namespace kiln::rpc
