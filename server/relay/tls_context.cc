#include "server/relay/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/state/small_file.h"

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

// Far more than a chain, or all authorities of a system.
constexpr int64_t kPemBytesMax = int64_t{4} << 20;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Bio MemoryOf(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

// Without a password: OpenSSL would ask for one on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

// Returns none if any is malformed, as in a file that was cut.
std::vector<Certificate> CertificatesIn(const std::string& text) {
  std::vector<Certificate> certificates;
  const Bio bio = MemoryOf(text);
  ERR_clear_error();
  while (X509* const next = PEM_read_bio_X509_AUX(bio.get(), nullptr, NoPassword, nullptr))
    certificates.emplace_back(next, &X509_free);
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const bool is_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!is_end) certificates.clear();
  return certificates;
}

bool UseChain(SSL_CTX* context, const std::string& text) {
  const std::vector<Certificate> chain = CertificatesIn(text);
  if (chain.empty() || SSL_CTX_use_certificate(context, chain[0].get()) != 1) return false;
  for (size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return false;
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& text) {
  const Bio bio = MemoryOf(text);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr), &EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

// Requests and verifies a client certificate; a client without one may use a token.
bool TrustClients(SSL_CTX* context, const std::string& text) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const std::vector<Certificate> authorities = CertificatesIn(text);
  for (const Certificate& authority : authorities) {
    if (SSL_CTX_add_client_CA(context, authority.get()) != 1 ||
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1)
      return false;
  }
  return !authorities.empty();
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
  // Sessions are not resumed, so each handshake proves again who the client is.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_alpn_select_cb(context.get(),
                             protocol == Protocol::kHttp2 ? SelectHttp2 : SelectHttp1, nullptr);
  const struct {
    const char* key;
    const std::string& path;
    bool (*use)(SSL_CTX* context, const std::string& text);
    const char* what;
  } rows[] = {
      {"certificate", files.certificate, UseChain,
       "is not a file with a certificate in PEM format"},
      {"key", files.key, UseKey,
       "is not a file with the certificate's private key in PEM format, without a password"},
      {"client_ca", files.client_ca, TrustClients, "is not a file with certificates in PEM format"},
  };
  for (const auto& [key, path, use, what] : rows) {
    if (path.empty() && use == TrustClients) continue;
    const auto text = state::ReadSmallFile(path, "the file", kPemBytesMax);
    if (!text.ok())
      return absl::InvalidArgumentError(absl::StrCat("tls.", key, ": ", text.status().message()));
    if (!use(context.get(), *text)) return bad(key, path, what);
  }
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
