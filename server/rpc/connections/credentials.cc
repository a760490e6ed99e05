#include "server/rpc/connections/credentials.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::rpc {
bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // A host name can begin like an address: 127.0.0.1.example.org.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == std::string::npos;
}

absl::Status CheckListening(const std::vector<std::string>& addresses, const relay::TlsFiles& tls,
                            bool nobody_known) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "tls: set certificate and key together (--tls_certificate, --tls_key)");
  }
  if (tls.empty() && !tls.client_ca.empty())
    return absl::InvalidArgumentError("tls: client_ca also needs a certificate and a key");
  if (!tls.empty()) {
    if (const auto loaded = relay::LoadTlsContext(tls); !loaded.ok()) return loaded.status();
  }
  for (const std::string& address : addresses) {
    if (absl::StartsWith(address, "unix:") || IsLoopback(address)) continue;
    if (tls.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "listen: ", address, " can be reached from other machines, so it requires TLS: set ",
          "--tls_certificate and --tls_key, or listen on 127.0.0.1"));
    }
    if (nobody_known && tls.client_ca.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "listen: ", address, " can be reached from other machines, but the daemon has no users: ",
          "start it on its Unix socket, add users with `kiln user add NAME` and restart it, or ",
          "set --tls_client_ca"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMetricsListening(const std::string& address, MetricsAccess access) {
  if (IsLoopback(address)) return absl::OkStatus();
  if (access.is_plain) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics: ", address,
                     " can be reached from other machines, but plain_http is only for this ",
                     "machine: remove plain_http, or serve metrics on 127.0.0.1"));
  }
  if (!access.is_open) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metrics: ", address, " can be reached from other machines, but the daemon has no users: ",
      "add one with `kiln user add NAME --role viewer`, whose token is the password for scraping, ",
      "or serve metrics on 127.0.0.1"));
}

absl::Status CheckHost(const std::string& host, bool is_open) {
  if (!is_open || IsLoopback(host)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "a daemon without users answers only calls to localhost or 127.0.0.1");
}

}  // namespace kiln::rpc
