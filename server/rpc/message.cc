#include "server/rpc/message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"

namespace kiln::rpc {

absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  const size_t size = bytes.Length();
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    parsed = reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
  }
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "a message of ", size, " bytes is no ", message->GetTypeName(),
                                "; was the client built for another protocol?")),
                            "MALFORMED_MESSAGE");
}

void Serialize(const google::protobuf::Message& message, grpc::ByteBuffer* bytes) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  *bytes = grpc::ByteBuffer(&slice, 1);
}

}  // namespace kiln::rpc
