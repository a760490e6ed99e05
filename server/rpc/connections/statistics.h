// gRPC's statistics of its server's connections (channelz, gRFC A14), which gRPC collects anyway.
#ifndef KILN_SERVER_RPC_CONNECTIONS_STATISTICS_H_
#define KILN_SERVER_RPC_CONNECTIONS_STATISTICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::rpc {

// Returns the relay's name for a connection (relay::Connection::name), from a call's peer() or from
// gRPC's list: "unix-abstract:kiln.…". Anything else is returned unchanged.
std::string NameOfPeer(absl::string_view peer);

// Returns the numbers of all connections, by name. Takes time for each connection, so store the
// numbers you need.
std::map<std::string, int64_t> ListConnections();

struct ConnectionStatistics {
  int64_t messages = 0;  // received completely
  int64_t open_calls = 0;
};
// Returns nullopt if the connection has ended.
std::optional<ConnectionStatistics> ReadConnectionStatistics(int64_t connection);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_STATISTICS_H_
