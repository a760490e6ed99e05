#include "server/rpc/connections/watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/connections/statistics.h"

namespace kiln::rpc {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ConnectionBounds kBounds{.unknown_bytes_max = 10,
                                   .unknown_bytes_together_max = 25,
                                   .call_bytes_max = 100,
                                   .bytes_together_max = 500};

TEST(BeyondBoundsTest, AConnectionWithoutAnAcceptedCallBringsLittle) {
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 10}}), IsEmpty());
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 10}, {.bytes = 11}}), ElementsAre(1));
  // Calls that are not accepted do not raise the limit.
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 11, .open_calls = 1000}}), ElementsAre(0));
}

TEST(BeyondBoundsTest, AnotherBringsAMessageForEachOfItsCalls) {
  EXPECT_THAT(BeyondBounds(kBounds, {{.accepted = true, .bytes = 100}}), IsEmpty());
  EXPECT_THAT(BeyondBounds(kBounds, {{.accepted = true, .bytes = 101}}), ElementsAre(0));
  EXPECT_THAT(BeyondBounds(kBounds, {{.accepted = true, .bytes = 300, .open_calls = 2}}),
              IsEmpty());
}

TEST(BeyondBoundsTest, OfThoseThatHaveTooMuchTogetherTheLargestEnd) {
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 8}, {.bytes = 9}, {.bytes = 8}}), IsEmpty());
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 8}, {.bytes = 10}, {.bytes = 8}}), ElementsAre(1));
  const Traffic large{.accepted = true, .bytes = 300, .open_calls = 9};
  const Traffic small{.accepted = true, .bytes = 100, .open_calls = 9};
  EXPECT_THAT(BeyondBounds(kBounds, {small, large, small}), IsEmpty());
  EXPECT_THAT(BeyondBounds(kBounds, {small, large, small, large}), ElementsAre(AnyOf(1, 3)));
  // A connection closed for its own excess makes room for others.
  const Traffic beyond{.accepted = true, .bytes = 400};
  EXPECT_THAT(BeyondBounds(kBounds, {beyond, large}), ElementsAre(0));
  // Connections without an accepted call never displace accepted ones.
  EXPECT_THAT(BeyondBounds(kBounds, {large, {.bytes = 9}, {.bytes = 9}, {.bytes = 9}}),
              ElementsAre(AnyOf(1, 2, 3)));
}

TEST(BeyondBoundsTest, WhoeverMayBeAcceptedHasTheBenefitOfTheDoubt) {
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 90}, {.bytes = 50}}, 1), ElementsAre(0));
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 90}, {.bytes = 50}}, 2), IsEmpty());
  EXPECT_THAT(BeyondBounds(kBounds, {{.bytes = 101}, {.bytes = 50}}, 2), ElementsAre(0));
}

TEST(BeyondCallsTest, OfAUserWithTooManyTheConnectionsWithTheMostEnd) {
  const ConnectionBounds bounds{.user_calls_max = 100};
  const auto of = [](const std::string& user, int64_t calls) {
    return Traffic{.accepted = !user.empty(), .open_calls = calls, .user = user};
  };
  EXPECT_THAT(BeyondCalls(bounds, {of("ann", 60), of("ann", 40), of("bob", 100)}), IsEmpty());
  EXPECT_THAT(BeyondCalls(bounds, {of("ann", 60), of("ann", 41), of("bob", 100)}), ElementsAre(0));
  EXPECT_THAT(BeyondCalls(bounds, {of("ann", 101), of("ann", 1)}), ElementsAre(0));
  // Connections without a user are counted separately.
  EXPECT_THAT(BeyondCalls(bounds, {of("", 60), of("ann", 60)}), IsEmpty());
  EXPECT_THAT(BeyondCalls(bounds, {of("", 60), of("", 61)}), ElementsAre(1));
}

TEST(NameOfPeerTest, IsTheRelaysName) {
  EXPECT_EQ(NameOfPeer("unix-abstract:kiln.1234.5"), "kiln.1234.5");
  EXPECT_EQ(NameOfPeer("unix:"), "unix:");
}

}  // namespace
}  // namespace kiln::rpc
