#include "server/rpc/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {

absl::Status Example() {
  return errors::WithReason(absl::NotFoundError("handle 7 is unknown"), "UNKNOWN_HANDLE",
                            {{"handle", "7"}});
}

TEST(Status, CarriesErrorInfo) {
  const v1::Status proto = ToProto(Example());
  EXPECT_EQ(proto.code(), 5);
  EXPECT_EQ(proto.message(), "handle 7 is unknown");
  ASSERT_EQ(proto.details_size(), 1);
  EXPECT_EQ(proto.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  v1::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(proto.details(0).value()));
  EXPECT_EQ(info.domain(), "kiln");
  EXPECT_EQ(info.reason(), "UNKNOWN_HANDLE");
  EXPECT_EQ(info.metadata().at("handle"), "7");
}

TEST(Status, CallsEndWithTheSameDetails) {
  const grpc::Status status = ToGrpc(Example());
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(status.error_details(), ToProto(Example()).SerializeAsString());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

TEST(Status, Timestamps) {
  const auto proto = ToProto(absl::FromUnixSeconds(12) + absl::Nanoseconds(34));
  EXPECT_EQ(proto.seconds(), 12);
  EXPECT_EQ(proto.nanos(), 34);
}

}  // namespace
}  // namespace kiln::rpc
