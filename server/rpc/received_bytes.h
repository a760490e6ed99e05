// What the system counts of a TCP connection.
#ifndef KILN_SERVER_RPC_RECEIVED_BYTES_H_
#define KILN_SERVER_RPC_RECEIVED_BYTES_H_

#include <cstdint>
#include <optional>

namespace kiln::rpc {

// That have come in, read or not (TCP_INFO of tcp(7)). Nothing if `file` is no open connection.
std::optional<int64_t> ReceivedBytes(int file);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_RECEIVED_BYTES_H_
