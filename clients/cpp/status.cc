#include "clients/cpp/status.h"

#include <grpcpp/support/status.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace kiln::client {
namespace {

void CopyDetails(const v1::Status& from, absl::Status& to) {
  for (const auto& detail : from.details())
    to.SetPayload(detail.type_url(), absl::Cord(detail.value()));
}

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  auto payload = status.GetPayload(kErrorInfoType);
  v1::ErrorInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return "";
  return info.reason();
}

bool IsLostConnection(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) return false;
  const std::string reason = ReasonOf(status);
  return reason.empty() || reason == "RESTARTING";
}

absl::Status FromProto(const v1::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()), status.message());
  CopyDetails(status, result);
  return result;
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  v1::Status details;
  const bool has_details =
      !status.error_details().empty() && details.ParseFromString(status.error_details());
  std::string message = status.error_message();
  // Without details the error is gRPC's own: the daemon's all have some.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !has_details) {
    message = absl::StrCat("no kilnd answers at ", address, " (", status.error_message(),
                           "). Start one with `kilnd`, or name another's address in $KILN_ADDRESS");
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), message);
  if (has_details) CopyDetails(details, result);
  // "daemon is shutting down" would tell the user little of what is lost.
  if (ReasonOf(result) != "SHUTTING_DOWN") return result;
  absl::Status stopped = absl::UnavailableError(
      absl::StrCat("the daemon at ", address, " has stopped, so its sessions and their tensors ",
                   "are lost; connect again once one runs"));
  CopyDetails(details, stopped);
  return stopped;
}

}  // namespace kiln::client
