#include "server/rpc/connections/statistics.h"

#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <limits>
#include <memory>

#include "absl/strings/strip.h"
#include "server/rpc/connections/channelz.pb.h"

namespace kiln::rpc {
namespace {

// Takes ownership of the text. Returns an empty message if it is null or cannot be parsed.
template <typename Message>
Message ParseJson(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, gpr_free);
  Message parsed;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  if (text == nullptr || !google::protobuf::util::JsonStringToMessage(text, &parsed, options).ok())
    return {};
  return parsed;
}

}  // namespace

std::string NameOfPeer(absl::string_view peer) {
  absl::ConsumePrefix(&peer, "unix-abstract:");
  return std::string(peer);
}

std::map<std::string, int64_t> ListConnections() {
  std::map<std::string, int64_t> connections;
  const auto servers =
      ParseJson<channelz::Servers>(grpc_channelz_get_servers(/*start_server_id=*/0));
  for (const channelz::Server& server : servers.server()) {
    const auto sockets = ParseJson<channelz::ServerSockets>(
        grpc_channelz_get_server_sockets(server.ref().server_id(), /*start_socket_id=*/0,
                                         /*max_results=*/std::numeric_limits<int>::max()));
    for (const channelz::SocketRef& socket : sockets.socket_ref()) {
      // "unix: unix-abstract:kiln.…": the peer comes last.
      const std::string& name = socket.name();
      connections[NameOfPeer(absl::string_view(name).substr(name.rfind(' ') + 1))] =
          socket.socket_id();
    }
  }
  return connections;
}

std::optional<ConnectionStatistics> ReadConnectionStatistics(int64_t connection) {
  const auto answer = ParseJson<channelz::SocketAnswer>(grpc_channelz_get_socket(connection));
  if (!answer.has_socket()) return std::nullopt;
  const channelz::SocketData& data = answer.socket().data();
  return ConnectionStatistics{
      .messages = data.messages_received(),
      .open_calls = data.streams_started() - data.streams_succeeded() - data.streams_failed()};
}

}  // namespace kiln::rpc
