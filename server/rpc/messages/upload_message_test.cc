#include "server/rpc/messages/upload_message.h"

#include <random>
#include <string>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace kiln::rpc {
namespace {

// Splits the bytes into slices of this size.
grpc::ByteBuffer Sliced(const std::string& bytes, size_t step) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += step) slices.emplace_back(bytes.substr(at, step));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Checks that ReadUpload accepts or refuses the bytes as protobuf does, with the same result.
void ExpectTheSame(const std::string& bytes) {
  v1::UploadRequest expected;
  const bool is_one = expected.ParseFromString(bytes);
  for (const size_t step : {1, 3, 1000}) {
    grpc::ByteBuffer buffer = Sliced(bytes, step);
    UploadMessage message;
    ASSERT_EQ(ReadUpload(buffer, &message).ok(), is_one) << step;
    if (!is_one) continue;
    EXPECT_EQ(absl::StrJoin(message.data, ""), expected.data());
    ASSERT_EQ(message.header.has_value(), expected.has_header());
    EXPECT_EQ(message.header.value_or(v1::UploadHeader()).SerializeAsString(),
              expected.header().SerializeAsString());
  }
}

v1::UploadRequest Example() {
  v1::UploadRequest request;
  request.mutable_header()->set_session_id("session");
  request.mutable_header()->set_blob("blob");
  request.mutable_header()->set_size_bytes(1234567);
  request.set_data(std::string(300, 'x'));
  return request;
}

TEST(UploadMessage, IsReadAsProtobufReadsIt) {
  const std::string all = Example().SerializeAsString();
  v1::UploadRequest header, data;
  *header.mutable_header() = Example().header();
  data.set_data("other");
  for (const std::string& bytes :
       {all, header.SerializeAsString(), data.SerializeAsString(), std::string(),
        data.SerializeAsString() + header.SerializeAsString(), all + data.SerializeAsString(),
        all + header.SerializeAsString(), all + all, "\x18\x05" + all, all + "\x18", all + "\x0c",
        all + std::string(1, '\0'), std::string("\x10\x05"), std::string("\x08\x05"),
        std::string("\x12\x05xy"), std::string("\x12\xff\xff\xff\xff\x0f"),
        std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x0a\x04\x12\x02\xc3\x28")})
    ExpectTheSame(bytes);
}

TEST(UploadMessage, DamageIsFoundAsProtobufFindsIt) {
  std::mt19937 random(7);
  const std::string whole = Example().SerializeAsString();
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    bytes[random() % 40] = static_cast<char>(random());
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    ExpectTheSame(bytes);
  }
}

}  // namespace
}  // namespace kiln::rpc
