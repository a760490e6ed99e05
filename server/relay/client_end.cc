#include "server/relay/client_end.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::relay {
namespace {

// Closing a socket with unread bytes resets the connection, and the client then reports a network
// failure instead of a closed connection.
void HangUp(int file) {
  constexpr int kReadsMax = 64;
  char unread[4096];
  shutdown(file, SHUT_WR);
  for (int i = 0; i < kReadsMax && recv(file, unread, sizeof(unread), MSG_DONTWAIT) > 0; ++i) {
  }
  close(file);
}

class PlainEnd : public ClientEnd {
 public:
  explicit PlainEnd(int file) : file_(file) {}
  ~PlainEnd() override { HangUp(file_); }
  Io Handshake() override { return {}; }
  Io Read(char* to, size_t size) override { return ReadSocket(file_, to, size); }
  Io Write(absl::string_view from) override { return WriteSocket(file_, from); }
  void EndWriting() override { shutdown(file_, SHUT_WR); }

 private:
  const int file_;
};

// OpenSSL's error queue belongs to the thread, and an error left there would be attributed to the
// next connection.
class TlsEnd : public ClientEnd {
 public:
  TlsEnd(int file, const TlsContext& context, std::string* why_failed)
      : file_(file), ssl_(SSL_new(context.get()), &SSL_free), why_failed_(*why_failed) {
    SSL_set_fd(ssl_.get(), file);
    SSL_set_accept_state(ssl_.get());
  }
  ~TlsEnd() override { HangUp(file_); }

  Io Handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return {};
    const Io io = Failed(result);
    if (io.outcome == Io::kEnded) why_failed_ = ErrorText();
    return io;
  }
  Io Read(char* to, size_t size) override {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), to, size, &bytes);
    return result == 1 ? Io{Io::kDone, bytes} : Failed(result);
  }
  Io Write(absl::string_view from) override {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_write_ex(ssl_.get(), from.data(), from.size(), &bytes);
    return result == 1 ? Io{Io::kDone, bytes} : Failed(result);
  }
  void EndWriting() override {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    shutdown(file_, SHUT_WR);
  }

  std::string CertificateName() const override {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(ssl_.get()), &X509_free);
    if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return {};
    X509_NAME* const subject = X509_get_subject_name(certificate.get());
    const int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (index < 0) return {};
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
    if (size < 0) return {};
    std::string name(reinterpret_cast<char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
    return name;
  }

 private:
  Io Failed(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {Io::kWantsRead};
      case SSL_ERROR_WANT_WRITE:
        return {Io::kWantsWrite};
      default:
        return {Io::kEnded};
    }
  }
  static std::string ErrorText() {
    const unsigned long error = ERR_peek_error();
    const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
    return reason == nullptr ? "the client has closed the connection" : reason;
  }

  const int file_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::string& why_failed_;
};

Io OfSystemCall(ssize_t result) {
  if (result > 0) return {Io::kDone, static_cast<size_t>(result)};
  return {result < 0 && (errno == EAGAIN || errno == EINTR) ? Io::kWantsRead : Io::kEnded};
}

}  // namespace

std::unique_ptr<ClientEnd> MakePlainEnd(int file) { return std::make_unique<PlainEnd>(file); }

std::unique_ptr<ClientEnd> MakeTlsEnd(int file, const TlsContext& context,
                                      std::string* why_failed) {
  return std::make_unique<TlsEnd>(file, context, why_failed);
}

Io ReadSocket(int file, char* to, size_t size) {
  return OfSystemCall(recv(file, to, size, MSG_DONTWAIT));
}

Io WriteSocket(int file, absl::string_view from) {
  Io io = OfSystemCall(send(file, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  if (io.outcome == Io::kWantsRead) io.outcome = Io::kWantsWrite;
  return io;
}

}  // namespace kiln::relay
