#include "server/errors/errors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::errors {
namespace {

TEST(Errors, CarriesReasonAndDetails) {
  const absl::Status status =
      WithReason(absl::NotFoundError("handle 7 is unknown"), "UNKNOWN_HANDLE", {{"handle", "7"}});
  EXPECT_EQ(Reason(status), "UNKNOWN_HANDLE");
  EXPECT_THAT(Details(status), testing::ElementsAre(testing::Pair("handle", "7")));
  EXPECT_EQ(status.message(), "handle 7 is unknown");
}

TEST(Errors, ReasonFallsBackToTheCode) {
  EXPECT_EQ(Reason(absl::UnavailableError("no")), "UNAVAILABLE");
  EXPECT_TRUE(Details(absl::UnavailableError("no")).empty());
}

TEST(Errors, OkStaysOk) { EXPECT_TRUE(WithReason(absl::OkStatus(), "X").ok()); }

TEST(Errors, ForeignPayloadsAreLeftOut) {
  absl::Status status = absl::InternalError("x");
  status.SetPayload("type.googleapis.com/other", absl::Cord("y"));
  EXPECT_TRUE(Details(status).empty());
}

TEST(Errors, LongNamesAndMessagesAreCut) {
  const absl::Status status = WithReason(absl::NotFoundError(std::string(5000, 'm')), "X",
                                         {{"blob", std::string(5000, 'b')}});
  EXPECT_EQ(Details(status).at("blob"), std::string(80, 'b') + "...");
  const absl::Status bounded = WithBoundedMessage(status);
  EXPECT_EQ(std::string(bounded.message()), std::string(997, 'm') + "...");
  EXPECT_EQ(Reason(bounded), "X");
  EXPECT_EQ(Details(bounded), Details(status));
  EXPECT_EQ(WithBoundedMessage(absl::NotFoundError("short")), absl::NotFoundError("short"));
}

}  // namespace
}  // namespace kiln::errors
