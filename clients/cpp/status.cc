#include "clients/cpp/status.h"

#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace kiln::client {
namespace {

void CopyDetails(const v1::Status& from, absl::Status& to) {
  for (const auto& detail : from.details())
    to.SetPayload(detail.type_url(), absl::Cord(detail.value()));
}

}  // namespace

absl::Status FromProto(const v1::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()), status.message());
  CopyDetails(status, result);
  return result;
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(
        absl::StrCat("no kilnd answers at ", address, " (", status.error_message(),
                     "). Start one with `kilnd`, or name another's address in $KILN_ADDRESS"));
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::Status details;
  if (details.ParseFromString(status.error_details())) CopyDetails(details, result);
  return result;
}

}  // namespace kiln::client
