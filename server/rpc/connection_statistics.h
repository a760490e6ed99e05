// What gRPC counts of its server's connections (channelz, gRFC A14), which takes it no time that it
// would not take anyhow.
#ifndef KILN_SERVER_RPC_CONNECTION_STATISTICS_H_
#define KILN_SERVER_RPC_CONNECTION_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::rpc {

// The number of a connection, by grpc::ServerContext::peer(). Takes time for each connection that
// there is, so remember it. Nothing if it has ended.
std::optional<int64_t> FindConnection(const std::string& peer);

struct ConnectionStatistics {
  int64_t messages = 0;  // that came and were taken by their calls
  int64_t open_calls = 0;
};
// Nothing if it has ended.
std::optional<ConnectionStatistics> ReadConnectionStatistics(int64_t connection);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTION_STATISTICS_H_
