#include "server/fairness/fair_queue.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace kiln::fairness {
namespace {

// Serves `seconds` of device time; every flow always has work. Returns the time of each flow.
std::map<FairQueue::FlowId, double> Share(FairQueue& queue,
                                          const std::map<FairQueue::FlowId, double>& cost,
                                          double seconds) {
  std::map<FairQueue::FlowId, double> got;
  for (const auto& [flow, each] : cost) queue.Push(flow, 0, each);
  for (double time = 0; time < seconds;) {
    const auto entry = queue.Pop();
    got[entry->flow] += entry->cost;
    time += entry->cost;
    queue.Push(entry->flow, 0, entry->cost);
  }
  return got;
}

TEST(FairQueue, EmptyGivesNothing) {
  FairQueue queue;
  queue.AddFlow("ann", 1);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(FairQueue, KeepsTheOrderOfOneFlow) {
  FairQueue queue;
  const auto flow = queue.AddFlow("ann", 1);
  for (int i = 0; i < 5; ++i) queue.Push(flow, i, 0.1 * (5 - i));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.Pop()->item, i);
  EXPECT_EQ(queue.size(), 0);
}

TEST(FairQueue, EqualUsersShareTimeNotRuns) {
  FairQueue queue;
  const auto slow = queue.AddFlow("ann", 1);
  const auto fast = queue.AddFlow("bob", 1);
  auto got = Share(queue, {{slow, 0.1}, {fast, 0.001}}, 100);
  EXPECT_NEAR(got[slow], got[fast], 0.2);
}

TEST(FairQueue, WeightsCount) {
  FairQueue queue;
  const auto heavy = queue.AddFlow("ann", 3);
  const auto light = queue.AddFlow("bob", 1);
  auto got = Share(queue, {{heavy, 0.01}, {light, 0.01}}, 100);
  EXPECT_NEAR(got[heavy] / got[light], 3, 0.01);
}

TEST(FairQueue, MoreSessionsDoNotGiveAUserMore) {
  FairQueue queue;
  const auto ann = queue.AddFlow("ann", 1);
  const auto bob1 = queue.AddFlow("bob", 1);
  const auto bob2 = queue.AddFlow("bob", 1);
  auto got = Share(queue, {{ann, 0.01}, {bob1, 0.01}, {bob2, 0.01}}, 100);
  EXPECT_NEAR(got[ann], 50, 0.1);
  EXPECT_NEAR(got[bob1], 25, 0.1);
  EXPECT_NEAR(got[bob2], 25, 0.1);
}

TEST(FairQueue, IdlingSavesNothingUp) {
  FairQueue queue;
  const auto busy = queue.AddFlow("ann", 1);
  const auto idle = queue.AddFlow("bob", 1);
  Share(queue, {{busy, 0.01}}, 10);
  auto got = Share(queue, {{idle, 0.01}}, 1);
  EXPECT_NEAR(got[busy], 0.5, 0.03);
  EXPECT_NEAR(got[idle], 0.5, 0.03);
}

// Many users always have work; one who was idle has had less.
TEST(FairQueue, WhoHasHadLessGoesBeforeAllWhoWait) {
  FairQueue queue(/*credit_seconds=*/0.01);
  std::map<FairQueue::FlowId, double> busy;
  for (int user = 0; user < 8; ++user) busy[queue.AddFlow("busy" + std::to_string(user), 1)] = 0.01;
  const auto light = queue.AddFlow("light", 1);
  Share(queue, busy, 1);
  for (int request = 0; request < 20; ++request) {
    queue.Push(light, 1, 0.001);
    EXPECT_EQ(queue.Pop()->flow, light) << request;
    // One round of the others.
    for (size_t i = 0; i < busy.size(); ++i) queue.Push(queue.Pop()->flow, 0, 0.01);
  }
}

TEST(FairQueue, IdlingSavesUpTheCreditAlone) {
  FairQueue queue(/*credit_seconds=*/0.05);
  const auto busy = queue.AddFlow("ann", 1);
  const auto idle = queue.AddFlow("bob", 1);
  Share(queue, {{busy, 0.01}}, 100);
  const auto got = Share(queue, {{idle, 0.01}}, 1);
  EXPECT_NEAR(got.at(idle) - got.at(busy), 0.05, 0.021);
}

// A user who returns under the same name keeps the time they have had.
TEST(FairQueue, NobodyGetsTheCreditAgainByLeaving) {
  FairQueue queue(/*credit_seconds=*/0.05);
  const auto busy = queue.AddFlow("ann", 1);
  for (int i = 0; i < 200; ++i) queue.Push(busy, i, 0.01);
  double got = 0, others = 0;
  for (int i = 0; i < 100; ++i) {
    const auto flow = queue.AddFlow("bob", 1);
    queue.Push(flow, 1000, 0.01);
    for (auto entry = queue.Pop(); entry->flow != flow; entry = queue.Pop()) others += entry->cost;
    got += 0.01;
    queue.RemoveFlow(flow);
  }
  EXPECT_LE(got - others, 0.05 + 0.021);
}

TEST(FairQueue, WhatGoesOnIsChargedAndTheVirtualTimeFollows) {
  FairQueue queue;
  const auto alone = queue.AddFlow("ann", 1), newcomer = queue.AddFlow("bob", 1);
  queue.Push(alone, 1, 0.01);
  queue.Push(alone, 2, 0.01);
  EXPECT_EQ(queue.Pop()->item, 1);
  for (int slice = 1; slice < 1000; ++slice) queue.GoOn(alone, 0.01, 0.01, 0.01);
  // The other flow has run for ten seconds, but the newcomer need not catch up.
  auto got = Share(queue, {{newcomer, 0.01}}, 1);
  EXPECT_NEAR(got[newcomer], 0.5, 0.03);
}

TEST(FairQueue, MeasuredTimeReplacesThePrediction) {
  FairQueue queue;
  const auto liar = queue.AddFlow("ann", 1);
  const auto honest = queue.AddFlow("bob", 1);
  std::map<FairQueue::FlowId, double> got;
  queue.Push(liar, 0, 0.0001);
  queue.Push(honest, 0, 0.01);
  for (double time = 0; time < 10;) {
    const auto entry = queue.Pop();
    const double actual = 0.01;
    got[entry->flow] += actual;
    time += actual;
    queue.Correct(entry->flow, entry->cost, actual);
    queue.Push(entry->flow, 0, entry->cost);
  }
  EXPECT_NEAR(got[liar], got[honest], 0.02);
}

TEST(FairQueue, RemovedFlowReturnsItsItems) {
  FairQueue queue;
  const auto gone = queue.AddFlow("ann", 1);
  const auto stays = queue.AddFlow("bob", 1);
  queue.Push(gone, 1, 1);
  queue.Push(gone, 2, 1);
  queue.Push(stays, 3, 1);
  EXPECT_EQ(queue.RemoveFlow(gone), (std::vector<FairQueue::Item>{1, 2}));
  queue.Correct(gone, 1, 2);
  EXPECT_EQ(queue.Pop()->item, 3);
  EXPECT_FALSE(queue.Pop().has_value());
  EXPECT_TRUE(queue.RemoveFlow(gone).empty());
}

TEST(FairQueue, BatchGetsItsPartWhileTheOthersHaveWork) {
  FairQueue queue;
  const auto now = queue.AddFlow("ann", 1);
  const auto later = queue.AddFlow("ann", 1, Priority::kBatch);
  const auto other = queue.AddFlow("bob", 1, Priority::kBatch);
  auto got = Share(queue, {{now, 0.01}, {later, 0.01}, {other, 0.01}}, 170);
  EXPECT_NEAR(got[now], 160, 0.1);
  EXPECT_NEAR(got[later], 5, 0.1);
  EXPECT_NEAR(got[other], 5, 0.1);
}

TEST(FairQueue, WeightsChangeWhileItRuns) {
  FairQueue queue;
  const auto ann = queue.AddFlow("ann", 1), bob = queue.AddFlow("bob", 1);
  auto got = Share(queue, {{ann, 0.01}, {bob, 0.01}}, 10);
  EXPECT_NEAR(got[ann], got[bob], 0.02);
  queue.SetWeight("bob", 4);
  queue.SetWeight("nobody", 4);
  got = Share(queue, {{ann, 0.01}, {bob, 0.01}}, 10);
  EXPECT_NEAR(got[bob], 8, 0.1);
}

TEST(FairQueue, TheRestOfAnItemComesBeforeTheNext) {
  FairQueue queue;
  const auto flow = queue.AddFlow("ann", 1);
  queue.Push(flow, 1, 0.1);
  queue.Push(flow, 2, 0.1);
  EXPECT_EQ(queue.Pop()->item, 1);
  EXPECT_TRUE(queue.PushFront(flow, 1, 0.1));
  EXPECT_EQ(queue.First()->item, 1);
  EXPECT_EQ(queue.RemoveIf(flow, [](auto item) { return item == 2; }),
            (std::vector<FairQueue::Item>{2}));
  EXPECT_EQ(queue.Pop()->item, 1);
  EXPECT_EQ(queue.size(), 0);
  EXPECT_FALSE(queue.PushFront(99, 1, 0.1));
}

TEST(FairQueue, AHeldFlowLetsItsUsersOthersPass) {
  FairQueue queue;
  const auto ann = queue.AddFlow("ann", 1), also_ann = queue.AddFlow("ann", 1);
  queue.Push(ann, 1, 0.1);
  queue.Push(also_ann, 2, 0.1);
  queue.Hold(ann);
  EXPECT_EQ(queue.Pop()->item, 2);
  EXPECT_FALSE(queue.Pop().has_value());
  queue.ReleaseHeld();
  EXPECT_EQ(queue.Pop()->item, 1);
}

// Sessions that are opened for one run each.
TEST(FairQueue, LeavingAndComingBackGainsNothing) {
  FairQueue queue;
  const auto stays = queue.AddFlow("ann", 1);
  queue.Push(stays, 0, 0.01);
  double got = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto flow = queue.AddFlow("bob", 1);
    queue.Push(flow, 1, 0.03);
    const auto entry = queue.Pop();
    if (entry->flow == stays) {
      got += entry->cost;
      queue.Push(stays, 0, 0.01);
    }
    queue.RemoveFlow(flow);
  }
  EXPECT_GT(got, 7);
}

TEST(FairQueue, JainIndexOfManyEqualUsers) {
  FairQueue queue;
  std::map<FairQueue::FlowId, double> cost;
  for (int user = 0; user < 8; ++user) {
    cost[queue.AddFlow("user" + std::to_string(user), 1)] = 0.001 * (1 + user * user);
  }
  double sum = 0, squares = 0;
  for (const auto& [flow, seconds] : Share(queue, cost, 100)) {
    sum += seconds;
    squares += seconds * seconds;
  }
  EXPECT_GT(sum * sum / (8 * squares), 0.999);
}

}  // namespace
}  // namespace kiln::fairness
