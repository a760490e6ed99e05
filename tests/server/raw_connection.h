// HTTP/2 connections that break gRPC's conventions, for tests.
#ifndef KILN_TESTS_SERVER_RAW_CONNECTION_H_
#define KILN_TESTS_SERVER_RAW_CONNECTION_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace kiln::testing {

// RFC 9113, section 6.
enum FrameType : char {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kContinuation = 9
};
inline constexpr size_t kFrameHead = 9;
inline constexpr char kAck = 1;
inline constexpr char kEndStream = 1;
inline constexpr char kEndHeaders = 4;

inline std::string Frame(FrameType type, char flags, uint32_t stream, absl::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(type);
  frame.push_back(flags);
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return absl::StrCat(frame, payload);
}

// Encodes a literal header without indexing: RFC 7541, section 6.2.2.
inline std::string Header(absl::string_view name, absl::string_view value) {
  std::string header(1, '\0');
  for (const absl::string_view text : {name, value}) {
    header.push_back(static_cast<char>(text.size()));
    absl::StrAppend(&header, text);
  }
  return header;
}

// Returns the headers of a POST by http, as gRPC's clients send it.
inline std::string CallHeaders(absl::string_view method, absl::string_view token = "") {
  const std::string authorization =
      token.empty() ? "" : Header("authorization", absl::StrCat("Bearer ", token));
  return absl::StrCat("\x83\x86", Header(":path", method), Header(":authority", "localhost"),
                      Header("content-type", "application/grpc"), Header("te", "trailers"),
                      authorization);
}

// Returns the frames of a call with one message, which ends the request.
inline std::string Call(uint32_t stream, absl::string_view method, absl::string_view message,
                        absl::string_view token = "") {
  std::string data(1, '\0');
  for (const int shift : {24, 16, 8, 0}) data.push_back(static_cast<char>(message.size() >> shift));
  return absl::StrCat(Frame(kHeaders, kEndHeaders, stream, CallHeaders(method, token)),
                      Frame(kData, kEndStream, stream, absl::StrCat(data, message)));
}

// A connection that sends only what a test tells it to.
class RawConnection {
 public:
  // How much of the beginning it sends.
  enum class Says { kNothing, kPreface, kPrefaceAndSettings };
  explicit RawConnection(int port) : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    Connect(reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  // Connects to a Unix socket.
  explicit RawConnection(const std::string& path, Says says = Says::kPrefaceAndSettings)
      : file_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    Connect(reinterpret_cast<sockaddr*>(&address), sizeof(address), says);
  }
  ~RawConnection() {
    shutdown(file_, SHUT_RDWR);
    if (reader_.joinable()) reader_.join();
    close(file_);
  }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // From now on reads what arrives and answers pings; otherwise the daemon closes the connection
  // after half a minute. Requires: nothing else is sent afterwards.
  void StayAlive() {
    reader_ = std::thread([this] {
      for (std::string head = Read(kFrameHead); !head.empty(); head = Read(kFrameHead)) {
        size_t size = 0;
        for (int i = 0; i < 3; ++i) size = size << 8 | static_cast<uint8_t>(head[i]);
        const std::string payload = Read(size);
        const bool is_question = head[3] == kPing && head[4] == 0;
        if (is_question && !Send(Frame(kPing, kAck, 0, payload))) break;
      }
      has_ended_ = true;
    });
  }
  // True if the daemon has closed the connection although it answers pings.
  bool HasEnded() const { return has_ended_; }

  // Waits for the end of the answer to the only call that was made. False if the connection ended
  // before.
  bool IsAnswered() {
    for (std::string head = Read(kFrameHead); !head.empty(); head = Read(kFrameHead)) {
      if (head[3] == kHeaders && (head[4] & kEndStream) != 0) return true;
      size_t size = 0;
      for (int i = 0; i < 3; ++i) size = size << 8 | static_cast<uint8_t>(head[i]);
      if (size > 0 && Read(size).empty()) return false;
    }
    return false;
  }
  // Discards what has arrived; false once the daemon has closed the connection. Does not wait.
  bool IsOpen() const {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = recv(file_, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return got < 0 && errno == EAGAIN;
  }
  // Returns false once the daemon has closed the connection.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

 private:
  void Connect(const sockaddr* address, socklen_t size, Says says = Says::kPrefaceAndSettings) {
    EXPECT_EQ(connect(file_, address, size), 0) << strerror(errno);
    // The daemon may close the connection at once, so failures are ignored.
    if (says != Says::kNothing) Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    if (says == Says::kPrefaceAndSettings) Send(Frame(kSettings, 0, 0, ""));
  }
  // Returns `size` bytes, or none once the connection has ended.
  std::string Read(size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t got = recv(file_, bytes.data(), size, MSG_WAITALL);
    return got == static_cast<ssize_t>(size) ? bytes : "";
  }

  const int file_;
  std::atomic<bool> has_ended_ = false;
  std::thread reader_;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_RAW_CONNECTION_H_
