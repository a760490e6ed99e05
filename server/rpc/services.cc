#include "server/rpc/services.h"

#include "server/rpc/status.h"

namespace kiln::rpc {

grpc::Status End(const Backend& backend, const absl::Status& status) {
  if (!status.ok()) backend.metrics->Failed(status.code());
  return ToGrpc(status);
}

grpc::ServerUnaryReactor* Reply(const Backend& backend, grpc::CallbackServerContext* context,
                                const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(End(backend, status));
  return reactor;
}

absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(const Backend& backend,
                                                               const std::string& id) {
  auto session = backend.registry->Find(id);
  if (session.ok()) (*session)->Renew();
  return session;
}

}  // namespace kiln::rpc
