// By itself: <netinet/tcp.h> has an older tcp_info, of the same name.
#include "server/rpc/received_bytes.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace kiln::rpc {

std::optional<int64_t> ReceivedBytes(int file) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
    return std::nullopt;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

}  // namespace kiln::rpc
