// Tests of joint work in the queues of several devices, without threads: every random load ends.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/fairness/device_queue.h"

namespace kiln::fairness {
namespace {

// Devices that run lists in the order of submission. A piece of joint work ends when it is first on
// all of its devices. Items are indices of works.
class Model {
 public:
  Model(int devices, int users) : devices_(devices) {
    for (Device& device : devices_)
      for (int user = 0; user < users; ++user)
        device.flows.push_back(device.queue.flows().AddFlow(absl::StrCat("user", user), 1));
  }

  // `seconds`: of each piece.
  void Add(int user, std::vector<int> on, int pieces, double seconds) {
    const auto number = static_cast<int64_t>(works_.size());
    for (const int device : on)
      devices_[device].queue.flows().Push(devices_[device].flows[user], number, seconds);
    works_.push_back({std::move(on), pieces, seconds});
  }

  // Returns whether anything happened: an item was started, or a piece ended.
  bool Step(int device) { return Start(device) || End(device); }
  int left() const { return static_cast<int>(works_.size()) - ended_; }

 private:
  struct Work {
    std::vector<int> on;
    int left = 1;  // pieces not yet submitted
    double seconds = 0;
    std::map<int, int64_t> tickets{};  // by device; of the next piece
  };
  struct Piece {
    int64_t work = 0;
    std::map<int, int64_t> tickets;
    bool is_last = false;
  };
  struct Device {
    DeviceQueue queue{QueueLimits()};
    std::vector<FairQueue::FlowId> flows;
    std::deque<size_t> submitted;  // pieces
  };

  bool Start(int number) {
    Device& device = devices_[number];
    const auto start = device.queue.Next();
    if (!start) return false;
    Work& work = works_[start->item];
    work.tickets[number] = start->ticket;
    if (work.tickets.size() < work.on.size()) {
      device.queue.Park(start->ticket);
      return true;
    }
    --work.left;
    for (const int member : work.on) {
      DeviceQueue& queue = devices_[member].queue;
      if (work.left > 0) {
        EXPECT_TRUE(queue.Continue(work.tickets[member], start->item, work.seconds));
      }
      if (member != number) queue.Unpark(work.tickets[member]);
      devices_[member].submitted.push_back(pieces_.size());
    }
    pieces_.push_back({start->item, std::exchange(work.tickets, {}), work.left == 0});
    return true;
  }

  bool End(int number) {
    Device& device = devices_[number];
    if (device.submitted.empty()) return false;
    const size_t first = device.submitted.front();
    const Piece& piece = pieces_[first];
    const Work& work = works_[piece.work];
    for (const int member : work.on)
      if (devices_[member].submitted.front() != first) return false;
    for (const int member : work.on) {
      devices_[member].submitted.pop_front();
      devices_[member].queue.Finished(piece.tickets.at(member), work.seconds);
    }
    if (piece.is_last) ++ended_;
    return true;
  }

  std::vector<Device> devices_;
  std::vector<Work> works_;
  std::vector<Piece> pieces_;
  int ended_ = 0;
};

TEST(SubmissionOrder, TenThousandMixesEndWithinBoundedSteps) {
  for (int seed = 0; seed < 10'000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % count); };
    const int devices = 2 + below(5);
    const int users = 1 + below(4);
    Model model(devices, users);
    const int works = 1 + below(60);
    int items = 0;
    for (int i = 0; i < works; ++i) {
      std::vector<int> on(devices);
      for (int device = 0; device < devices; ++device) on[device] = device;
      std::shuffle(on.begin(), on.end(), random);
      on.resize(1 + below(devices));
      const int pieces = below(2) == 0 ? 1 : 1 + below(5);
      items += pieces * static_cast<int>(on.size());
      model.Add(below(users), on, pieces, std::exp2(-below(20)));
    }
    // Each item starts once and ends once. A round in which nothing happens means a deadlock.
    int idle_rounds = 0;
    int events = 0;
    while (model.left() > 0 && idle_rounds == 0) {
      idle_rounds = 1;
      for (int i = 0; i < 2 * devices; ++i) {
        if (!model.Step(i < devices ? i : below(devices))) continue;
        idle_rounds = 0;
        ++events;
      }
    }
    ASSERT_EQ(model.left(), 0) << "seed " << seed;
    ASSERT_LE(events, 2 * items) << "seed " << seed;
  }
}

TEST(SubmissionOrder, WhatIsParkedHoldsNothingButItsFlow) {
  DeviceQueue queue{QueueLimits()};
  const auto ann = queue.flows().AddFlow("ann", 1);
  const auto bob = queue.flows().AddFlow("bob", 1);
  queue.flows().Push(ann, 1, 0.002);
  queue.flows().Push(ann, 2, 0.002);
  const auto joint = queue.Next();
  ASSERT_TRUE(joint && joint->item == 1);
  queue.Park(joint->ticket);
  EXPECT_EQ(queue.in_flight(), 0);
  EXPECT_EQ(queue.seconds_in_flight(), 0);
  EXPECT_FALSE(queue.Next());
  for (int i = 0; i < 10; ++i) {
    queue.flows().Push(bob, 10 + i, 1);
    const auto start = queue.Next();
    ASSERT_TRUE(start) << i;
    EXPECT_TRUE(queue.Finished(start->ticket, 1));
  }
  queue.Unpark(joint->ticket);
  EXPECT_EQ(queue.in_flight(), 1);
  const auto next = queue.Next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item, 2);
  EXPECT_TRUE(queue.Finished(joint->ticket, 0.002));
  EXPECT_FALSE(queue.Finished(joint->ticket, 0.002));
}

// Nothing of the same flow comes in between on any device.
TEST(SubmissionOrder, TheNextPieceIsTheNextOfItsFlow) {
  DeviceQueue queue{QueueLimits()};
  const auto ann = queue.flows().AddFlow("ann", 1);
  const auto bob = queue.flows().AddFlow("bob", 1);
  for (const FairQueue::Item item : {1, 2}) queue.flows().Push(ann, item, 0.005);
  const auto first = queue.Next();
  queue.Park(first->ticket);
  EXPECT_TRUE(queue.Continue(first->ticket, 3, 0.005));
  EXPECT_FALSE(queue.Next()) << "its flow waits with it";
  queue.Unpark(first->ticket);
  queue.flows().Push(bob, 4, 0.005);
  EXPECT_TRUE(queue.Finished(first->ticket, 0.005));
  std::vector<FairQueue::Item> items;
  while (const auto start = queue.Next()) {
    items.push_back(start->item);
    EXPECT_TRUE(queue.Finished(start->ticket, 0.005));
  }
  EXPECT_EQ(items, (std::vector<FairQueue::Item>{4, 3, 2}));
  EXPECT_FALSE(queue.Continue(first->ticket, 5, 0.005)) << "it has ended";
}

TEST(SubmissionOrder, WhatIsGivenUpWhileParkedCostsNothing) {
  DeviceQueue queue{QueueLimits()};
  const auto ann = queue.flows().AddFlow("ann", 1);
  queue.flows().Push(ann, 1, 0.005);
  queue.flows().Push(ann, 2, 0.005);
  const auto joint = queue.Next();
  queue.Park(joint->ticket);
  queue.Refused(joint->ticket);
  EXPECT_EQ(queue.in_flight(), 0);
  const auto next = queue.Next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item, 2);
}

}  // namespace
}  // namespace kiln::fairness
