#include "server/rpc/message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"

namespace kiln::rpc {

absl::Status Malformed(const std::string& type) {
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("the message is no ", type.empty() ? "request" : type,
                                              "; was the client built for another protocol?")),
      "MALFORMED_MESSAGE");
}

absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    parsed = reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
  }
  // Before the message is used: its bytes would take the memory a second time.
  bytes.Clear();
  return parsed ? absl::OkStatus() : Malformed(message->GetTypeName());
}

void Serialize(const google::protobuf::Message& message, grpc::ByteBuffer* bytes) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  // Straight into the slice that gRPC sends; a string in between would be one more copy of the
  // value.
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  *bytes = grpc::ByteBuffer(&slice, 1);
}

}  // namespace kiln::rpc
