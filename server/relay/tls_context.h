// What TLS of a port uses: a certificate with its key, and the authorities of the clients'
// certificates.
#ifndef KILN_SERVER_RELAY_TLS_CONTEXT_H_
#define KILN_SERVER_RELAY_TLS_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct ssl_ctx_st;

namespace kiln::relay {

// PEM files. Without a certificate there is no TLS.
struct TlsFiles {
  std::string certificate;  // with those that lead to its authority
  std::string key;
  std::string client_ca;  // whose certificates are users', by their common names; empty: none are

  bool empty() const { return certificate.empty(); }
};

// What is spoken inside, for ALPN.
enum class Protocol { kHttp2, kHttp1 };

// Connections keep it until their end, while new ones may already use another.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

// TLS 1.2 or later, the protocol by ALPN. INVALID_ARGUMENT names the file that cannot be used:
// empty, truncated, no PEM, or the key of another certificate.
absl::StatusOr<TlsContext> LoadTlsContext(const TlsFiles& files,
                                          Protocol protocol = Protocol::kHttp2);

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_TLS_CONTEXT_H_
