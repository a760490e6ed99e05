// What a message takes of memory once it is parsed, told before it is.
#ifndef KILN_SERVER_RPC_PARTS_H_
#define KILN_SERVER_RPC_PARTS_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace kiln::rpc {

// Two bytes on the wire can become a message of some hundred bytes, so that the size of what comes
// is no bound on what it is parsed into. OK if the parts of a message of this type (messages,
// strings, elements of lists, fields that the type does not have) would take at most 32 MiB besides
// what the message has on the wire; those of graphs have 384 MiB for themselves, which the largest
// graph that there may be does not need. INVALID_ARGUMENT (TOO_MANY_PARTS) otherwise. What cannot
// be parsed is OK as far as it can be read: who parses it says so.
absl::Status CheckParts(grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_PARTS_H_
