#include "server/quota/refusal.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::quota {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(Refusal, SaysHowMuchIsUsedAndWhatToDo) {
  const absl::Status status = Refusal({"ann", Resource::kDeviceMemory, "cpu:0"}, 512 << 20,
                                      int64_t{7} << 29, int64_t{4} << 30);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("user \"ann\" may have 4.0 GiB of device memory on cpu:0 and has "
                                 "3.5 GiB, so 512.0 MiB more would exceed the limit"));
  EXPECT_THAT(message, HasSubstr("release tensors"));
  EXPECT_THAT(message, HasSubstr("`kiln quota set USER device_memory=...`"));
  EXPECT_THAT(errors::Details(status),
              UnorderedElementsAre(Pair("user", "ann"), Pair("quota", "device_memory"),
                                   Pair("device", "cpu:0"), Pair("asked", "536870912"),
                                   Pair("used", "3758096384"), Pair("limit", "4294967296")));
}

TEST(Refusal, OfOneThingSaysNothingOfUse) {
  const absl::Status status = Refusal({"ann", Resource::kGraphNodes}, 12, 0, 10);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("may have 10 nodes in one graph, so 12 would exceed the limit; split"));
}

TEST(Refusal, OneIsNotSeveral) {
  EXPECT_THAT(std::string(Refusal({"ann", Resource::kSessions}, 1, 1, 1).message()),
              HasSubstr("may have 1 session and has 1, so 1 more would exceed the limit"));
  EXPECT_THAT(std::string(Refusal({"ann", Resource::kSessions}, 1, 2, 2).message()),
              HasSubstr("may have 2 sessions and has 2"));
}

TEST(Refusal, NamesTheLargestHoldersOnce) {
  const absl::Status bare = Refusal({"ann", Resource::kDeviceMemory, "cpu:0"}, 1, 10, 10);
  const auto scope = Unexplained(bare);
  ASSERT_TRUE(scope);
  EXPECT_EQ(scope->user, "ann");
  EXPECT_EQ(scope->resource, Resource::kDeviceMemory);
  EXPECT_EQ(scope->device, "cpu:0");
  std::vector<Holder> holders;
  for (int i = 1; i <= 5; ++i) holders.push_back({absl::StrCat("handle ", i), i << 20});
  const absl::Status explained = WithHolders(bare, scope->resource, holders);
  EXPECT_THAT(std::string(explained.message()),
              HasSubstr("handle 5: 5.0 MiB; handle 4: 4.0 MiB; handle 3: 3.0 MiB; and 2 more"));
  EXPECT_EQ(errors::Details(explained).at("largest"), "handle 5");
  EXPECT_EQ(errors::Details(explained).at("quota"), "device_memory");
  EXPECT_FALSE(Unexplained(explained));
  EXPECT_EQ(WithHolders(bare, scope->resource, {}), bare);
}

TEST(Refusal, OtherErrorsAreNotItsOwn) {
  EXPECT_FALSE(Unexplained(absl::OkStatus()));
  EXPECT_FALSE(Unexplained(absl::ResourceExhaustedError("no memory")));
  EXPECT_FALSE(
      Unexplained(errors::WithReason(absl::ResourceExhaustedError("no memory"), "OUT_OF_MEMORY")));
}

TEST(Resources, TheTableIsInTheOrderOfTheEnum) {
  ASSERT_EQ(Resources().size(), static_cast<size_t>(kNumResources));
  for (int i = 0; i < kNumResources; ++i) {
    const ResourceRow& row = Resources()[static_cast<size_t>(i)];
    EXPECT_EQ(row.resource, static_cast<Resource>(i));
    EXPECT_EQ(ParseResource(row.name), row.resource);
    EXPECT_EQ(Limits()[row.resource], row.default_limit);
  }
  EXPECT_FALSE(ParseResource("gold"));
}

TEST(Resources, AmountsAreReadable) {
  EXPECT_EQ(AmountText(Resource::kSessions, 3'000'000), "3000000");
  EXPECT_EQ(AmountText(Resource::kHostMemory, 1000), "1000 bytes");
  EXPECT_EQ(AmountText(Resource::kHostMemory, 1536), "1.5 KiB");
  EXPECT_EQ(AmountText(Resource::kHostMemory, int64_t{3} << 40), "3072.0 GiB");
}

}  // namespace
}  // namespace kiln::quota
