#include "server/rpc/parts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "kiln/v1/graph.pb.h"
#include "server/errors/errors.h"
#include "server/rpc/unwatched_reads.h"

namespace kiln::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int64_t kMost = 32 << 20;
constexpr int64_t kMostOfGraphs = 384 << 20;
// No message of this size has too many parts, whatever is in it: two bytes become a hundred.
constexpr size_t kAlwaysFew = 256 << 10;
// As deep as protobuf's parser goes.
constexpr int kMostDepth = 100;

// Bytes, of protobuf's generated code on a machine of 64 bits, rounded up. A list that grows holds
// up to twice its elements.
constexpr int64_t kMessage = 48;  // and its place in a list
constexpr int64_t kField = 8;
constexpr int64_t kList = 24;
constexpr int64_t kMap = 104;
constexpr int64_t kMapEntry = 64;
constexpr int64_t kString = 48;   // without its characters
constexpr int64_t kUnknown = 32;  // and a number in a list
constexpr int64_t kUnknownGroup = 96;

// Of a message of this type with nothing in it. Of a oneof's fields there is one at a time.
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

// Of so many bytes of a packed list: each may be a number.
int64_t SizeOfPacked(const FieldDescriptor& field, int64_t bytes) {
  const bool is_wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  return kUnknown + 2 * (is_wide ? 8 : 4) * bytes;
}

class Counter {
 public:
  explicit Counter(CodedInputStream& input) : input_(input) {}

  // False at once when there are too many.
  bool Fits(const Descriptor& type) {
    Message(&type, 0);
    return fits_;
  }

 private:
  // Null is the type of a group: Kiln's messages have none, so that all in it is unknown. False
  // ends the walk: there are too many parts, or no parser can read what follows.
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
      return depth < kMostDepth && Take(kUnknownGroup) && Message(nullptr, depth + 1);
    // Of another kind than the field's, it is kept as unknown.
    const bool is_in_place =
        field != nullptr && !field->is_repeated() &&
        WireFormatLite::WireTypeForFieldType(
            static_cast<WireFormatLite::FieldType>(field->type())) == wire_type;
    return Take(is_in_place ? 0 : kUnknown) && WireFormatLite::SkipField(&input_, tag);
  }

  bool LengthDelimited(const FieldDescriptor* field, int depth) {
    uint32_t length = 0;
    if (!input_.ReadVarint32(&length) || length > kMostLength) return false;
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
    if (depth == kMostDepth || !Take(SizeOf(type))) return false;
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

  static constexpr uint32_t kMostLength = 1 << 30;

  CodedInputStream& input_;
  int64_t left_ = kMost;
  int64_t left_of_graphs_ = kMostOfGraphs;
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
      absl::InvalidArgumentError(absl::StrCat(
          "a ", type.full_name(), " of ", bytes.Length(),
          " bytes has so many parts that they would take more memory than a message may: ",
          kMost >> 20, " MiB, or ", kMostOfGraphs >> 20,
          " MiB for those of graphs; send fewer at once")),
      "TOO_MANY_PARTS", {{"type", type.full_name()}});
}

}  // namespace kiln::rpc
