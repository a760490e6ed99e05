#include "server/rpc/services.h"

#include "server/rpc/status.h"

namespace kiln::rpc {

grpc::Status End(const Backend& backend, const absl::Status& status) {
  if (!status.ok()) backend.metrics->Failed(status.code());
  return ToGrpc(status);
}

absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(const Backend& backend,
                                                               const std::string& id) {
  auto session = backend.registry->Find(id);
  if (session.ok()) (*session)->Renew();
  return session;
}

}  // namespace kiln::rpc
