#include "server/relay/call_budgets.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::relay {
namespace {

constexpr Rates kCalls{.connection = {.per_second = 10, .burst = 20},
                       .user = {.per_second = 18, .burst = 40},
                       .origin = {.per_second = 12, .burst = 25},
                       .strangers = {.per_second = 30, .burst = 60}};

class CallBudgetsTest : public ::testing::Test {
 protected:
  // Returns how many calls may begin now.
  int Begin(CallBudgets::Connection& connection) {
    int count = 0;
    while (connection.BeginCall(now_) == absl::ZeroDuration()) ++count;
    return count;
  }
  std::unique_ptr<CallBudgets::Connection> Open(const std::string& peer) {
    return budgets_.Open(peer, now_);
  }

  CallBudgets budgets_{{.calls = kCalls,
                        .greetings_of_origin = {.per_second = 2, .burst = 5},
                        .greetings = {.per_second = 3, .burst = 8}}};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(CallBudgetsTest, AConnectionHasABurstAndThenItsRate) {
  const auto connection = Open("a");
  EXPECT_EQ(Begin(*connection), 20);
  EXPECT_EQ(connection->BeginCall(now_), absl::Milliseconds(100));
  now_ += absl::Milliseconds(100);
  EXPECT_EQ(Begin(*connection), 1);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Begin(*connection), 10);
  now_ += absl::Hours(1);
  EXPECT_EQ(Begin(*connection), 20);
}

TEST_F(CallBudgetsTest, ConnectingAgainGivesNoNewBurst) {
  EXPECT_EQ(Begin(*Open("a")), 20);
  EXPECT_EQ(Begin(*Open("a")), 5);
  EXPECT_EQ(Begin(*Open("a")), 0);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Begin(*Open("a")), 12);
  // A user from that origin has a separate budget.
  const auto known = Open("a");
  known->SetUser("ann");
  EXPECT_EQ(Begin(*known), 20);
}

TEST_F(CallBudgetsTest, StrangersHaveOneBudgetOfWhichUsersTakeNothing) {
  const auto known = Open("user's");
  known->SetUser("ann");
  for (const char* peer : {"a", "b", "c"}) EXPECT_EQ(Begin(*Open(peer)), 20);
  EXPECT_EQ(Begin(*Open("d")), 0);
  EXPECT_EQ(Begin(*known), 20);
}

TEST_F(CallBudgetsTest, SmallFramesHaveBudgetsOfTheirOwn) {
  const auto known = Open("a");
  known->SetUser("ann");
  EXPECT_EQ(Begin(*known), 20);
  const auto send_all = [&](CallBudgets::Connection& connection) {
    int count = 0;
    while (connection.SendSmallFrame(now_) == absl::ZeroDuration()) ++count;
    return count;
  };
  EXPECT_EQ(send_all(*known), 100'000);
  const auto second = Open("b");
  second->SetUser("ann");
  EXPECT_EQ(send_all(*second), 100'000);
  const auto third = Open("c");
  third->SetUser("ann");
  EXPECT_EQ(send_all(*third), 0);
  EXPECT_EQ(send_all(*Open("d")), 40'000);
}

TEST_F(CallBudgetsTest, NewConnectionsHaveARateForAnOriginAndForAll) {
  const auto greet_all = [&](const std::string& origin) {
    int count = 0;
    while (budgets_.Greet(origin, now_) == absl::ZeroDuration()) ++count;
    return count;
  };
  EXPECT_EQ(greet_all("a"), 5);
  EXPECT_EQ(budgets_.Greet("a", now_), absl::Milliseconds(500));
  EXPECT_EQ(greet_all("b"), 3);
  now_ += absl::Seconds(1);
  EXPECT_EQ(greet_all("a"), 2);
  EXPECT_EQ(greet_all("b"), 1);
}

TEST_F(CallBudgetsTest, AUserHasOneBudgetFromEverywhere) {
  std::vector<std::unique_ptr<CallBudgets::Connection>> connections;
  int begun = 0;
  for (int i = 0; i < 4; ++i) {
    connections.push_back(Open(absl::StrCat(i)));
    connections.back()->SetUser("ann");
    begun += Begin(*connections.back());
  }
  EXPECT_EQ(begun, 40);
  const auto other = Open("5");
  other->SetUser("bob");
  EXPECT_EQ(Begin(*other), 20);
}

TEST_F(CallBudgetsTest, TheTableHasABoundAndRemembersWhoHasUsedTheirs) {
  Begin(*Open("first"));
  std::vector<std::unique_ptr<CallBudgets::Connection>> open;
  for (size_t i = 0; i < CallBudgets::kBucketsMax + 10; ++i) {
    open.push_back(Open(absl::StrCat(i)));
    open.back()->SetUser(absl::StrCat(i));
  }
  // The last connections share a bucket. All other buckets are in use, and the first one's is not
  // full.
  EXPECT_EQ(Begin(*open[5]), 20);
  int begun = 0;
  for (size_t i = open.size() - 3; i < open.size(); ++i) begun += Begin(*open[i]);
  EXPECT_EQ(begun, 40);
  EXPECT_EQ(Begin(*Open("first")), 5);
  // Buckets are dropped when their connections are closed and they are full again.
  open.clear();
  now_ += absl::Hours(1);
  const auto late = Open("late"), later = Open("later");
  for (const auto& each : {late.get(), later.get()}) {
    each->SetUser(absl::StrCat(each == late.get()));
    EXPECT_EQ(Begin(*each), 20);
  }
}

}  // namespace
}  // namespace kiln::relay
