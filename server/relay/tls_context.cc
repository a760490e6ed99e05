#include "server/relay/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>

#include "absl/strings/str_cat.h"

namespace kiln::relay {
namespace {

int SelectHttp2(SSL*, const unsigned char** selected, unsigned char* selected_size,
                const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, selected_size, kHttp2, sizeof(kHttp2), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *selected = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// A client that offers no protocol, or only others, still speaks HTTP/1.1.
int SelectHttp1(SSL*, const unsigned char** selected, unsigned char* selected_size,
                const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, selected_size, kHttp1, sizeof(kHttp1), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *selected = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// Requests and verifies a client certificate; a client without one may use a token.
bool TrustClients(SSL_CTX* context, const std::string& authorities) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(authorities.c_str());
  if (names == nullptr) return false;
  SSL_CTX_set_client_CA_list(context, names);  // owns them
  return SSL_CTX_load_verify_locations(context, authorities.c_str(), nullptr) == 1;
}

}  // namespace

absl::StatusOr<TlsContext> LoadTlsContext(const TlsFiles& files, Protocol protocol) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  const auto bad = [](const std::string& key, const std::string& path, const std::string& what) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat("tls.", key, ": ", path, " ", what));
  };
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // A read returns after each record, also after one without data. A client may send any number of
  // those, and others must have their turn.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  // An encrypted key is refused. Otherwise OpenSSL would ask for its password on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  // Sessions are not resumed, so each handshake proves again who the client is.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_alpn_select_cb(context.get(),
                             protocol == Protocol::kHttp2 ? SelectHttp2 : SelectHttp1, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return bad("certificate", files.certificate, "is not a file with a certificate in PEM format");
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return bad("key", files.key, "is not a file with the certificate's private key in PEM format");
  if (!files.client_ca.empty() && !TrustClients(context.get(), files.client_ca))
    return bad("client_ca", files.client_ca, "is not a file with certificates in PEM format");
  return context;
}

absl::Time ExpiryOf(const TlsContext& context) {
  const X509* const certificate =
      context == nullptr ? nullptr : SSL_CTX_get0_certificate(context.get());
  std::tm time = {};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1)
    return absl::InfiniteFuture();
  return absl::FromTM(time, absl::UTCTimeZone());
}

}  // namespace kiln::relay
