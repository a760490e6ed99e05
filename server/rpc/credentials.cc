#include "server/rpc/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::rpc {
namespace {

constexpr unsigned kRefreshSeconds = 1;

}  // namespace

absl::Status CheckFiles(const TlsFiles& tls) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  const auto bad = [](const std::string& key, const std::string& path, const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("tls.", key, ": ", path, " ", what));
  };
  if (SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) != 1)
    return bad("certificate", tls.certificate, "is no file with a certificate in PEM");
  if (SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return bad("key", tls.key, "is no file with the certificate's private key in PEM");
  if (!tls.client_ca.empty() &&
      SSL_CTX_load_verify_locations(context.get(), tls.client_ca.c_str(), nullptr) != 1)
    return bad("client_ca", tls.client_ca, "is no file with certificates in PEM");
  return absl::OkStatus();
}

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // A name could begin like a number: 127.0.0.1.example.org.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == std::string::npos;
}

absl::Status CheckListening(const std::vector<std::string>& addresses, const TlsFiles& tls,
                            bool nobody_known) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "tls: certificate and key go together (--tls_certificate, --tls_key)");
  }
  if (tls.empty() && !tls.client_ca.empty())
    return absl::InvalidArgumentError("tls: client_ca needs a certificate and a key, too");
  if (!tls.empty()) {
    if (absl::Status status = CheckFiles(tls); !status.ok()) return status;
  }
  for (const std::string& address : addresses) {
    if (absl::StartsWith(address, "unix:") || IsLoopback(address)) continue;
    if (tls.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "listen: ", address, " can be reached from other machines, so it takes TLS: give ",
          "--tls_certificate and --tls_key, or listen on 127.0.0.1"));
    }
    if (nobody_known && tls.client_ca.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "listen: ", address, " can be reached from other machines, and the daemon has no users: ",
          "start it on its Unix socket, add some with `kiln user add NAME` and start it again, or ",
          "give --tls_client_ca"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMetricsListening(const std::string& address, bool is_open) {
  if (!is_open || IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metrics: ", address, " can be reached from other machines, and the daemon has no users: ",
      "add one with `kiln user add NAME --role viewer`, whose token is the password for scraping, ",
      "or serve them on 127.0.0.1"));
}

std::shared_ptr<grpc::ServerCredentials> PortCredentials(const TlsFiles& tls, Access& access,
                                                         std::function<void()> on_accepted) {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (tls.empty()) {
    credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
    credentials->SetAuthMetadataProcessor(
        access.MakeDoor(Entrance::kLoopback, std::move(on_accepted)).processor);
    return credentials;
  }
  using grpc::experimental::FileWatcherCertificateProvider;
  const auto provider = tls.client_ca.empty()
                            ? std::make_shared<FileWatcherCertificateProvider>(
                                  tls.key, tls.certificate, kRefreshSeconds)
                            : std::make_shared<FileWatcherCertificateProvider>(
                                  tls.key, tls.certificate, tls.client_ca, kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!tls.client_ca.empty()) {
    options.watch_root_certs();
    // Who has none may have a token.
    options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      access.MakeDoor(Entrance::kTls, std::move(on_accepted)).processor);
  return credentials;
}

}  // namespace kiln::rpc
