#include "server/rpc/messages/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/unwatched_reads.h"

namespace kiln::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Skips the rest of a message until an element with this tag, and returns it; 0: there is none.
uint32_t NextElement(CodedInputStream& input, uint32_t tag) {
  while (const uint32_t next = input.ReadTag()) {
    if (next == tag || !WireFormatLite::SkipField(&input, next)) return next;
  }
  return 0;
}

}  // namespace

absl::StatusOr<int> CountFlat(grpc::ByteBuffer& bytes, int field, const std::string& type) {
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok()) return Malformed(type);
  const UnwatchedReads unwatched;
  CodedInputStream input(&reader);
  const uint32_t tag = WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  int count = 0;
  while (const uint32_t next = NextElement(input, tag)) {
    uint32_t length = 0;
    if (next != tag || !input.ReadVarint32(&length)) return Malformed(type);
    ++count;
    const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(length));
    const uint32_t within = NextElement(input, tag);
    if (within == tag) {
      return errors::WithReason(
          absl::InvalidArgumentError("operations must not be nested: put all of them directly into "
                                     "the first one's message"),
          "NESTED_OPERATIONS");
    }
    if (within != 0 || input.BytesUntilLimit() != 0) return Malformed(type);
    input.PopLimit(limit);
  }
  if (!input.ConsumedEntireMessage()) return Malformed(type);
  return count;
}

absl::Status Malformed(const std::string& type) {
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "the message is not a valid ", type.empty() ? "request" : type,
                                "; check that client and daemon have the same version")),
                            "MALFORMED_MESSAGE");
}

absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(&bytes);
    parsed = reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
  }
  // Before the message is used: its bytes would use the memory twice.
  bytes.Clear();
  return parsed ? absl::OkStatus() : Malformed(message->GetTypeName());
}

void Serialize(const google::protobuf::Message& message, grpc::ByteBuffer* bytes) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  // Directly into the slice that gRPC sends; a string in between would be another copy of the
  // value.
  const uint8_t* const end =
      message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  KILN_CHECK_EQ(end - slice.begin(), size) << message.GetTypeName() << " changed meanwhile";
  *bytes = grpc::ByteBuffer(&slice, 1);
}

}  // namespace kiln::rpc
