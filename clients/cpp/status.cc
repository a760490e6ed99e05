#include "clients/cpp/status.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::client {
namespace {

void CopyDetails(const v1::Status& from, absl::Status& to) {
  for (const auto& detail : from.details())
    to.SetPayload(detail.type_url(), absl::Cord(detail.value()));
}

struct Cause {
  const char* sign;  // in gRPC's message, in lower case; gRPC has no codes for these errors
  const char* text;  // follows the address
};
constexpr char kHangsUp[] =
    " closed the connection at once. If its kilnd uses TLS, name the file with the authority of "
    "its certificate in $KILN_CA or as \"ca\" in ~/.config/kiln/config.toml. If you use a client "
    "certificate, check that kilnd accepts its authority (--tls_client_ca)";

constexpr Cause kCauses[] = {
    {"certificate has expired",
     " has an expired certificate. Ask the operator of its kilnd to start kilnd with a new one "
     "(--tls_certificate)"},
    {"certificate verify failed",
     " has a certificate that was not signed by the authority in $KILN_CA (or \"ca\" in "
     "~/.config/kiln/config.toml), or that is out of date. So this may not be the daemon that you "
     "want. Name the file with its authority; for a certificate made as in Kiln's guide "
     "\"Sharing a box\" that is the certificate itself, box.pem"},
    {"is not in peer certificate",
     " has a certificate for other names. Connect with a name in the certificate (subjectAltName), "
     "or ask for a certificate that includes this name"},
    {"hostname verification check failed",
     " has a certificate for other names. Connect with a name in the certificate (subjectAltName), "
     "or ask for a certificate that includes this name"},
    {"wrong version number",
     " does not use TLS. Unset $KILN_CA (and \"ca\" in ~/.config/kiln/config.toml) for it, or name "
     "the port where kilnd uses TLS"},
    {"socket closed", kHangsUp},
    {"connection reset by peer", kHangsUp},
    // A TLS alert, which gRPC cannot parse.
    {"tsi data corrupted", kHangsUp},
};

// The message for the user when gRPC itself reports that a call failed because there is no
// connection.
std::string NobodyAnswers(const std::string& address, const std::string& message) {
  std::string said = absl::AsciiStrToLower(message);
  std::replace(said.begin(), said.end(), '_', ' ');
  // Otherwise an existing connection was lost.
  const bool is_new = absl::StrContains(said, "failed to connect");
  for (const Cause& cause : kCauses) {
    if (is_new && absl::StrContains(said, cause.sign))
      return absl::StrCat(address, cause.text, " (", message, ")");
  }
  return absl::StrCat(
      "no kilnd answers at ", address, " (", message,
      "). Start one with `kilnd`, or set $KILN_ADDRESS to the address of another one");
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
  // Without details the error is gRPC's own: all errors of the daemon have details.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !has_details) {
    message = NobodyAnswers(address, message);
  }
  // The client's own clock: the daemon has said nothing.
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && !has_details) {
    message = absl::StrCat(
        "the daemon at ", address, " has not answered in time (", message,
        "). It may be stopped, busy, or held up by a client with too many connections. Try again; "
        "if it stays so, look into its log for \"connection_refused\" and at the load of its "
        "machine, and restart it");
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), message);
  if (has_details) CopyDetails(details, result);
  // "daemon is shutting down" would not tell the user what is lost.
  if (ReasonOf(result) != "SHUTTING_DOWN") return result;
  absl::Status stopped = absl::UnavailableError(
      absl::StrCat("the daemon at ", address, " has stopped, so its sessions and their tensors ",
                   "are lost; connect again once one runs"));
  CopyDetails(details, stopped);
  return stopped;
}

}  // namespace kiln::client
