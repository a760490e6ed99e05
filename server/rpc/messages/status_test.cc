#include "server/rpc/messages/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"
#include "server/quota/refusal.h"

namespace kiln::rpc {
namespace {

absl::Status ExampleStatus() {
  return errors::WithReason(absl::NotFoundError("handle 7 is unknown"), "UNKNOWN_HANDLE",
                            {{"handle", "7"}});
}

TEST(Status, CarriesErrorInfo) {
  const v1::Status proto = ToProto(ExampleStatus());
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

TEST(Status, WhatIsLimitedSaysHowMuch) {
  const v1::Status proto =
      ToProto(quota::Refusal({"ann", quota::Resource::kDeviceMemory, "cpu:0"}, 5, 1000, 1002));
  ASSERT_EQ(proto.details_size(), 2);
  EXPECT_EQ(proto.details(1).type_url(), "type.googleapis.com/google.rpc.QuotaFailure");
  v1::QuotaFailure failure;
  ASSERT_TRUE(failure.ParseFromString(proto.details(1).value()));
  ASSERT_EQ(failure.violations_size(), 1);
  EXPECT_EQ(failure.violations(0).subject(), "user:ann");
  EXPECT_EQ(failure.violations(0).description(), proto.message());
  EXPECT_EQ(failure.violations(0).quota_metric(), "device_memory");
  EXPECT_EQ(failure.violations(0).quota_value(), 1002);
  const v1::Status of_all = ToProto(errors::WithReason(absl::ResourceExhaustedError("full"),
                                                       "TOO_MANY_SESSIONS", {{"limit", "7"}}));
  ASSERT_TRUE(failure.ParseFromString(of_all.details(1).value()));
  EXPECT_EQ(failure.violations(0).subject(), "daemon");
  EXPECT_EQ(failure.violations(0).quota_metric(), "TOO_MANY_SESSIONS");
  EXPECT_EQ(ToProto(absl::ResourceExhaustedError("full")).details_size(), 1);
  EXPECT_EQ(ToProto(errors::WithReason(absl::InvalidArgumentError("large"), "X", {{"limit", "7"}}))
                .details_size(),
            1);
}

TEST(Status, CallsEndWithTheSameDetails) {
  const grpc::Status status = ToGrpc(ExampleStatus());
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(status.error_details(), ToProto(ExampleStatus()).SerializeAsString());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

TEST(Status, Timestamps) {
  const auto proto = ToProto(absl::FromUnixSeconds(12) + absl::Nanoseconds(34));
  EXPECT_EQ(proto.seconds(), 12);
  EXPECT_EQ(proto.nanos(), 34);
}

}  // namespace
}  // namespace kiln::rpc
