// The client's end of a connection: a socket, with or without TLS.
#ifndef KILN_SERVER_RELAY_CLIENT_END_H_
#define KILN_SERVER_RELAY_CLIENT_END_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/relay/tls_context.h"

namespace kiln::relay {

struct Io {
  enum Outcome {
    kDone,        // `bytes` were moved; 0 after a handshake
    kWantsRead,   // try again when the socket is readable
    kWantsWrite,  // try again when it is writable
    kEnded,       // closed by the peer, or broken
  };
  Outcome outcome = kDone;
  size_t bytes = 0;
};

// Non-blocking. Owns the socket. Used by one thread, in which SIGPIPE is blocked.
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  // Until it returns kDone, nothing else may be called.
  virtual Io Handshake() = 0;
  // Requires: size > 0.
  virtual Io Read(char* to, size_t size) = 0;
  // Requires: `from` is not empty.
  virtual Io Write(absl::string_view from) = 0;
  // Signals the end of the data.
  virtual void EndWriting() = 0;
  // The common name of the client's verified certificate; empty if there is none.
  virtual std::string CertificateName() const { return {}; }
};

std::unique_ptr<ClientEnd> MakePlainEnd(int file);
// `why_failed` receives the reason when the handshake fails. It must outlive the result.
std::unique_ptr<ClientEnd> MakeTlsEnd(int file, const TlsContext& context, std::string* why_failed);

// The same for plain sockets of any kind.
Io ReadSocket(int file, char* to, size_t size);
Io WriteSocket(int file, absl::string_view from);

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CLIENT_END_H_
