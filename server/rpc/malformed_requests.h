// Requests that gRPC parses itself, before a method sees them. What it cannot parse it answers with
// UNIMPLEMENTED and no word of why, as if there were no such method.
#ifndef KILN_SERVER_RPC_MALFORMED_REQUESTS_H_
#define KILN_SERVER_RPC_MALFORMED_REQUESTS_H_

#include <grpcpp/server_builder.h>

#include "server/rpc/services.h"

namespace kiln::rpc {

// Such a request gets INVALID_ARGUMENT (MALFORMED_MESSAGE), which names the type that it is not of.
// Methods whose requests are a stream are left alone: they parse their own messages, see message.h.
// `daemon`, which counts them, outlives the server.
void ExplainMalformedRequests(const DaemonView& daemon, grpc::ServerBuilder& builder);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MALFORMED_REQUESTS_H_
