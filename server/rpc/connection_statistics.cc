#include "server/rpc/connection_statistics.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kiln::rpc {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Owns the text. Empty if there is none.
Struct ParseJson(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, gpr_free);
  Struct parsed;
  if (text == nullptr || !google::protobuf::util::JsonStringToMessage(text, &parsed).ok())
    return {};
  return parsed;
}

const Value& Field(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? Value::default_instance() : found->second;
}

// As JSON of Protobuf has them: 64 bits are a string, and zero is left out.
int64_t Number(const Struct& object, const std::string& name) {
  int64_t number = 0;
  return absl::SimpleAtoi(Field(object, name).string_value(), &number) ? number : 0;
}

std::optional<int64_t> FindConnectionOf(int64_t server, const std::string& name_end) {
  const Struct sockets = ParseJson(grpc_channelz_get_server_sockets(
      server, /*start_socket_id=*/0, /*max_results=*/std::numeric_limits<int>::max()));
  for (const Value& socket : Field(sockets, "socketRef").list_value().values()) {
    if (absl::EndsWith(Field(socket.struct_value(), "name").string_value(), name_end))
      return Number(socket.struct_value(), "socketId");
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> FindConnection(const std::string& peer) {
  const Struct servers = ParseJson(grpc_channelz_get_servers(/*start_server_id=*/0));
  for (const Value& server : Field(servers, "server").list_value().values()) {
    const int64_t id = Number(Field(server.struct_value(), "ref").struct_value(), "serverId");
    if (const auto found = FindConnectionOf(id, absl::StrCat(" ", peer))) return found;
  }
  return std::nullopt;
}

std::optional<ConnectionStatistics> ReadConnectionStatistics(int64_t connection) {
  const Struct answer = ParseJson(grpc_channelz_get_socket(connection));
  const Value& socket = Field(answer, "socket");
  if (!socket.has_struct_value()) return std::nullopt;
  const Struct& data = Field(socket.struct_value(), "data").struct_value();
  return ConnectionStatistics{.messages = Number(data, "messagesReceived"),
                              .open_calls = Number(data, "streamsStarted") -
                                            Number(data, "streamsSucceeded") -
                                            Number(data, "streamsFailed")};
}

}  // namespace kiln::rpc
