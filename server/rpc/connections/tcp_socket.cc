#include "server/rpc/connections/tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace kiln::rpc {
namespace {

// If sent data is not acknowledged for this long, the connection is closed, as in gRPC's own
// sockets.
constexpr int kUnconfirmedMilliseconds = 10'000;

void Set(int file, int level, int option, int value) {
  setsockopt(file, level, option, &value, sizeof(value));
}

void SetPort(sockaddr_storage& address, int port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = number;
  }
}

// Returns 0 if it is not bound.
int PortOf(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Returns -1 on failure, with errno set.
int ListenAt(const addrinfo& found, int port, bool both_families) {
  const int file = socket(found.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  sockaddr_storage address{};
  std::memcpy(&address, found.ai_addr, found.ai_addrlen);
  SetPort(address, port);
  Set(file, SOL_SOCKET, SO_REUSEADDR, 1);
  if (found.ai_family == AF_INET6) Set(file, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (bind(file, reinterpret_cast<sockaddr*>(&address), found.ai_addrlen) == 0 &&
      listen(file, SOMAXCONN) == 0)
    return file;
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

struct Listening {
  int port = 0;
  std::vector<int> files;
};

absl::StatusOr<Listening> ListenAtAll(const addrinfo* found, int port, bool both_families) {
  Listening listening{port, {}};
  int error = 0;
  for (; found != nullptr; found = found->ai_next) {
    const int file = ListenAt(*found, listening.port, both_families);
    if (file >= 0) {
      listening.files.push_back(file);
      // With port 0, the host's other addresses get the same port as the first.
      listening.port = PortOf(file);
    } else {
      error = errno;
    }
    if (error == EADDRINUSE) break;
  }
  // A name may have addresses of a family that this machine does not use.
  if (!listening.files.empty() && error != EADDRINUSE) return listening;
  for (const int file : listening.files) close(file);
  const char* const hint = error == EADDRINUSE ? "; is another kilnd running?" : "";
  return absl::UnavailableError(absl::StrCat(strerror(error), hint));
}

// An IPv4 address mapped into an IPv6 socket's address is reported as IPv4.
relay::Peer PeerOf(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  relay::Peer peer;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  const bool is_mapped = address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
  if (address.ss_family == AF_INET || is_mapped) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    const void* const number =
        is_mapped ? static_cast<const void*>(&six.sin6_addr.s6_addr[12]) : &four.sin_addr;
    peer.origin = inet_ntop(AF_INET, number, text, sizeof(text));
    peer.address = absl::StrCat(text, ":", ntohs(is_mapped ? six.sin6_port : four.sin_port));
    return peer;
  }
  peer.address = absl::StrCat("[", inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text)),
                              "]:", ntohs(six.sin6_port));
  // A single machine may use all addresses of its /64 network.
  in6_addr network = six.sin6_addr;
  std::memset(&network.s6_addr[8], 0, 8);
  peer.origin = absl::StrCat(inet_ntop(AF_INET6, &network, text, sizeof(text)), "/64");
  return peer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpSocket>> TcpSocket::Listen(const std::string& address,
                                                             Take take) {
  const size_t colon = address.rfind(':');
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  const std::string port = address.substr(colon + 1);
  addrinfo wanted{};
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &wanted, &found);
  absl::StatusOr<Listening> listening = absl::UnavailableError(gai_strerror(failed));
  if (failed == 0) {
    listening = ListenAtAll(found, std::atoi(port.c_str()), host == "::");
    freeaddrinfo(found);
  }
  if (!listening.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", listening.status().message()));
  }
  return std::unique_ptr<TcpSocket>(
      new TcpSocket(listening->port, std::move(listening->files), std::move(take)));
}

void TcpSocket::Accept(int file) {
  Set(file, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(file, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnconfirmedMilliseconds);
  take_(file, PeerOf(file));
}

}  // namespace kiln::rpc
