// What gRPC counts of its server's connections (channelz, gRFC A14), which takes it no time that it
// would not take anyhow.
#ifndef KILN_SERVER_RPC_CONNECTION_STATISTICS_H_
#define KILN_SERVER_RPC_CONNECTION_STATISTICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::rpc {

// The relay's name for a connection (relay::Connection::name), of a call's peer() or of one that
// gRPC lists: "unix-abstract:kiln.…". Anything else comes back as it is.
std::string NameOfPeer(absl::string_view peer);

// The numbers of all connections, by their names. Takes time for each, so remember what you
// need of it.
std::map<std::string, int64_t> ListConnections();

struct ConnectionStatistics {
  int64_t messages = 0;  // that came and were taken by their calls
  int64_t open_calls = 0;
};
// Nothing if it has ended.
std::optional<ConnectionStatistics> ReadConnectionStatistics(int64_t connection);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTION_STATISTICS_H_
