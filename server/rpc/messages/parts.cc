#include "server/rpc/messages/parts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "kiln/v1/graph.pb.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/unwatched_reads.h"

namespace kiln::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int64_t kPartBytesMax = 32 << 20;
constexpr int64_t kGraphPartBytesMax = 384 << 20;
// A message of at most this size cannot have too many parts: two bytes become at most about a
// hundred.
constexpr size_t kAlwaysFew = 256 << 10;
// The depth limit of protobuf's parser.
constexpr int kDepthMax = 100;

// Bytes used by protobuf's generated code on a 64-bit machine, rounded up. A growing list has
// capacity for up to twice its elements.
constexpr int64_t kMessage = 48;  // including its place in a list
constexpr int64_t kField = 8;
constexpr int64_t kList = 24;
constexpr int64_t kMap = 104;
constexpr int64_t kMapEntry = 64;
constexpr int64_t kString = 48;   // without its characters
constexpr int64_t kUnknown = 32;  // including a number in a list
constexpr int64_t kUnknownGroup = 96;

// Bytes of an empty message of this type. Of a oneof's fields, only one is set at a time.
int64_t SizeOf(const Descriptor& type) {
  int64_t bytes = kMessage + (type.options().map_entry() ? kMapEntry : 0);
  bytes += kField * type.real_oneof_decl_count();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.real_containing_oneof() != nullptr) continue;
    bytes += field.is_map() ? kMap : field.is_repeated() ? kList : kField;
  }
  return bytes;
}

// Bytes of a packed list with this many bytes on the wire, each of which may be a number.
int64_t SizeOfPacked(const FieldDescriptor& field, int64_t bytes) {
  const bool is_wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  return kUnknown + 2 * (is_wide ? 8 : 4) * bytes;
}

class Counter {
 public:
  explicit Counter(CodedInputStream& input) : input_(input) {}

  // Returns false as soon as there are too many parts.
  bool Fits(const Descriptor& type) {
    Message(&type, 0);
    return fits_;
  }

 private:
  // Null is the type of a group: Kiln's messages have none, so everything in it is unknown. Returns
  // false to end the walk: there are too many parts, or no parser could read what follows.
  bool Message(const Descriptor* type, int depth) {
    while (const uint32_t tag = input_.ReadTag()) {
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP)
        return type == nullptr;
      const FieldDescriptor* field =
          type == nullptr ? nullptr
                          : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!Field(tag, field, depth)) return false;
    }
    return true;
  }

  bool Field(uint32_t tag, const FieldDescriptor* field, int depth) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    if (wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED)
      return LengthDelimited(field, depth);
    if (wire_type == WireFormatLite::WIRETYPE_START_GROUP)
      return depth < kDepthMax && Take(kUnknownGroup) && Message(nullptr, depth + 1);
    // With another wire type than the field's, it is kept as an unknown field.
    const bool is_in_place =
        field != nullptr && !field->is_repeated() &&
        WireFormatLite::WireTypeForFieldType(
            static_cast<WireFormatLite::FieldType>(field->type())) == wire_type;
    return Take(is_in_place ? 0 : kUnknown) && WireFormatLite::SkipField(&input_, tag);
  }

  bool LengthDelimited(const FieldDescriptor* field, int depth) {
    uint32_t length = 0;
    if (!input_.ReadVarint32(&length) || length > kLengthMax) return false;
    const auto bytes = static_cast<int>(length);
    if (field == nullptr) return Take(kUnknown + kString) && input_.Skip(bytes);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Submessage(*field->message_type(), bytes, depth);
      case FieldDescriptor::CPPTYPE_STRING:
        return Take(kString) && input_.Skip(bytes);
      default:
        return Take(SizeOfPacked(*field, length)) && input_.Skip(bytes);
    }
  }

  bool Submessage(const Descriptor& type, int length, int depth) {
    const bool begins_graph = &type == v1::Graph::descriptor() && !in_graph_;
    if (begins_graph) in_graph_ = true;
    if (depth == kDepthMax || !Take(SizeOf(type))) return false;
    const CodedInputStream::Limit limit = input_.PushLimit(length);
    if (!Message(&type, depth + 1) || input_.BytesUntilLimit() != 0) return false;
    input_.PopLimit(limit);
    if (begins_graph) in_graph_ = false;
    return true;
  }

  bool Take(int64_t bytes) {
    int64_t& left = in_graph_ ? left_of_graphs_ : left_;
    left -= bytes;
    fits_ = left >= 0;
    return fits_;
  }

  static constexpr uint32_t kLengthMax = 1 << 30;

  CodedInputStream& input_;
  int64_t left_ = kPartBytesMax;
  int64_t left_of_graphs_ = kGraphPartBytesMax;
  bool in_graph_ = false;
  bool fits_ = true;
};

}  // namespace

absl::Status CheckParts(grpc::ByteBuffer& bytes, const Descriptor& type) {
  if (bytes.Length() <= kAlwaysFew) return absl::OkStatus();
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok()) return absl::OkStatus();
  const UnwatchedReads unwatched;
  CodedInputStream input(&reader);
  if (Counter(input).Fits(type)) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(
          absl::StrCat("a ", type.full_name(), " of ", bytes.Length(),
                       " bytes has so many parts that they would take more memory than allowed: ",
                       kPartBytesMax >> 20, " MiB, or ", kGraphPartBytesMax >> 20,
                       " MiB for graphs; send fewer at once")),
      "TOO_MANY_PARTS", {{"type", type.full_name()}});
}

}  // namespace kiln::rpc
