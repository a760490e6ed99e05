#include "server/rpc/messages/upload_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

#include "server/rpc/messages/message.h"
#include "server/rpc/messages/parts.h"
#include "server/rpc/messages/unwatched_reads.h"

namespace kiln::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t TagOf(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// A field that occurs several times is merged.
bool ReadHeader(CodedInputStream& input, std::optional<v1::UploadHeader>* header) {
  uint32_t length = 0;
  if (!input.ReadVarint32(&length)) return false;
  const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(length));
  if (!header->has_value()) header->emplace();
  if (!(*header)->MergeFromCodedStream(&input) || !input.ConsumedEntireMessage() ||
      input.BytesUntilLimit() != 0)
    return false;
  input.PopLimit(limit);
  return true;
}

// If a field occurs several times, the last one is used.
bool ReadData(CodedInputStream& input, std::vector<absl::string_view>* data) {
  uint32_t left = 0;
  if (!input.ReadVarint32(&left)) return false;
  data->clear();
  while (left > 0) {
    const void* piece = nullptr;
    int size = 0;
    if (!input.GetDirectBufferPointer(&piece, &size)) return false;
    size = static_cast<int>(std::min(static_cast<uint32_t>(size), left));
    data->emplace_back(static_cast<const char*>(piece), static_cast<size_t>(size));
    if (!input.Skip(size)) return false;
    left -= static_cast<uint32_t>(size);
  }
  return true;
}

bool ReadFields(CodedInputStream& input, UploadMessage* message) {
  while (const uint32_t tag = input.ReadTag()) {
    bool read = false;
    if (tag == TagOf(v1::UploadRequest::kHeaderFieldNumber)) {
      read = ReadHeader(input, &message->header);
    } else if (tag == TagOf(v1::UploadRequest::kDataFieldNumber)) {
      read = ReadData(input, &message->data);
    } else {
      read = WireFormatLite::SkipField(&input, tag);
    }
    if (!read) return false;
  }
  return input.ConsumedEntireMessage();
}

}  // namespace

absl::Status ReadUpload(grpc::ByteBuffer& bytes, UploadMessage* message) {
  message->header.reset();
  message->data.clear();
  if (absl::Status status = CheckParts(bytes, *v1::UploadRequest::descriptor()); !status.ok())
    return status;
  grpc::ProtoBufferReader reader(&bytes);
  if (reader.status().ok()) {
    const UnwatchedReads unwatched;
    CodedInputStream input(&reader);
    if (ReadFields(input, message)) return absl::OkStatus();
  }
  return Malformed(v1::UploadRequest::descriptor()->full_name());
}

}  // namespace kiln::rpc
