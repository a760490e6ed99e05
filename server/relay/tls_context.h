// TLS configuration of a port: a certificate with its key, and the authorities for clients'
// certificates.
#ifndef KILN_SERVER_RELAY_TLS_CONTEXT_H_
#define KILN_SERVER_RELAY_TLS_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

struct ssl_ctx_st;

namespace kiln::relay {

// Paths of PEM files. Without a certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  // with intermediate certificates
  std::string key;
  std::string client_ca;  // its certificates identify users by common name; empty: none

  bool empty() const { return certificate.empty(); }
};

// The protocol inside TLS, for ALPN.
enum class Protocol { kHttp2, kHttp1 };

// Connections keep it until they end, while new ones may already use another.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

// TLS 1.2 or later, with the protocol by ALPN. INVALID_ARGUMENT names the unusable file: empty,
// truncated, not PEM, or the key of another certificate.
absl::StatusOr<TlsContext> LoadTlsContext(const TlsFiles& files,
                                          Protocol protocol = Protocol::kHttp2);

// Returns when the certificate expires; InfiniteFuture without one.
absl::Time ExpiryOf(const TlsContext& context);

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_TLS_CONTEXT_H_
