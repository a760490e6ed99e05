#include "server/rpc/messages/parts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/program.pb.h"
#include "kiln/v1/session.pb.h"
#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {

using google::protobuf::io::CodedOutputStream;
using ::testing::HasSubstr;

absl::Status Check(const std::string& bytes, const google::protobuf::Descriptor& type) {
  grpc::Slice slice(bytes);
  grpc::ByteBuffer buffer(&slice, 1);
  return CheckParts(buffer, type);
}

// Returns a field with these bytes.
std::string Field(int number, const std::string& bytes) {
  std::string field;
  {
    google::protobuf::io::StringOutputStream stream(&field);
    CodedOutputStream coded(&stream);
    coded.WriteVarint32(static_cast<uint32_t>(number) << 3 | 2);
    coded.WriteVarint32(static_cast<uint32_t>(bytes.size()));
    coded.WriteString(bytes);
  }
  return field;
}

std::string Times(int count, const std::string& bytes) {
  std::string all;
  for (int i = 0; i < count; ++i) all += bytes;
  return all;
}

constexpr int kMany = 4'000'000;

TEST(Parts, ManySmallOnesAreRefusedWhateverTheyAre) {
  const std::string group = "\x7b\x7c";  // a nonexistent field's begin and end
  const struct {
    const char* name;
    std::string bytes;
    const google::protobuf::Descriptor* type;
  } cases[] = {
      {"nodes", Field(2, Times(kMany, Field(3, ""))), v1::CompileProgramRequest::descriptor()},
      {"nodes of an operation", Field(4, Field(2, Times(kMany, Field(3, "")))),
       v1::ConnectRequest::descriptor()},
      {"strings", Times(kMany, Field(2, "")), v1::ListSessionsRequest::descriptor()},
      {"numbers that the type has as text", Times(kMany, {"\x08\x00", 2}),
       v1::RenewSessionRequest::descriptor()},
      {"fields that there are not", Times(kMany, {"\xf8\x01\x00", 3}),
       v1::ListSessionsRequest::descriptor()},
      {"groups", Times(kMany, group), v1::ListSessionsRequest::descriptor()},
      {"what is in a group", Times(kMany, "\x7b\x0a\x01x\x7c"),
       v1::RenewSessionRequest::descriptor()},
      {"packed numbers", Field(1, std::string(kMany, '\1')), v1::Release::descriptor()},
  };
  for (const auto& [name, bytes, type] : cases) {
    SCOPED_TRACE(name);
    const absl::Status status = Check(bytes, *type);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(errors::Reason(status), "TOO_MANY_PARTS");
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(type->full_name(), " of ", bytes.size())));
  }
}

// The maximum that the daemon accepts: the largest graph, and the largest message of bytes.
TEST(Parts, WhatThereMayBeFits) {
  v1::ConnectRequest request;
  v1::Graph& graph = *request.mutable_define_program()->mutable_graph();
  for (int i = 0; i < 1 << 18; ++i) {
    v1::Node& node = *graph.add_nodes();
    node.set_op("reduce_window");
    node.set_dtype(v1::DTYPE_FLOAT32);
    for (uint32_t operand = 0; operand < 3; ++operand) node.add_operands(i + operand);
    for (const char* name : {"axes", "sizes"})
      for (int value = 0; value < 4; ++value)
        (*node.mutable_attributes())[name].mutable_ints()->add_values(value);
    node.set_source("a_long_path/of_a_file/with_a_line.py:1234");
  }
  EXPECT_EQ(Check(request.SerializeAsString(), *v1::ConnectRequest::descriptor()),
            absl::OkStatus());
  v1::ConnectRequest write;
  write.mutable_write()->set_data(std::string(60 << 20, 'x'));
  EXPECT_EQ(Check(write.SerializeAsString(), *v1::ConnectRequest::descriptor()), absl::OkStatus());
}

TEST(Parts, WhatCannotBeReadIsLeftToTheParser) {
  EXPECT_EQ(Check(std::string(1 << 20, '\xff'), *v1::ConnectRequest::descriptor()),
            absl::OkStatus());
}

}  // namespace
}  // namespace kiln::rpc
