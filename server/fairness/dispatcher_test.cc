#include "server/fairness/dispatcher.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/log.h"

namespace kiln::fairness {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Records calls of a piece of work.
struct Journal {
  std::vector<std::string> submitted;
  std::vector<int64_t> tickets;
  std::vector<std::string> failed;
};

class RecordedWork : public Work {
 public:
  RecordedWork(Journal* journal, std::string name, double seconds, absl::Status status = {})
      : journal_(journal), name_(std::move(name)), seconds_(seconds), status_(std::move(status)) {}
  double predicted_seconds() const override { return seconds_; }
  std::string label() const override { return name_; }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    EXPECT_GE(waited, absl::ZeroDuration());
    journal_->submitted.push_back(name_);
    journal_->tickets.push_back(ticket);
    if (!status_.ok()) return status_;
    return Handed::kAll;
  }
  void Fail(const absl::Status& status) override {
    journal_->failed.push_back(name_ + ":" + std::string(status.message()));
  }

 private:
  Journal* journal_;
  std::string name_;
  double seconds_;
  absl::Status status_;
};

class DispatcherTest : public testing::Test {
 protected:
  void Add(FairQueue::FlowId flow, const std::string& name, double seconds,
           absl::Status status = {}) {
    dispatcher_.Enqueue(flow, std::make_shared<RecordedWork>(&journal_, name, seconds, status));
  }
  Journal journal_;
  Dispatcher dispatcher_{"cpu:0", absl::Now, QueueLimits{.in_flight_max = 4, .slice_seconds = 4.0}};
};

class DaemonsWork : public RecordedWork {
 public:
  using RecordedWork::RecordedWork;
  bool is_users() const override { return false; }
};

TEST_F(DispatcherTest, KnowsWhetherUsersNeedTheDevice) {
  absl::Time now = absl::UnixEpoch();
  Dispatcher dispatcher(
      "cpu:0", [&] { return now; }, QueueLimits{.slice_seconds = 4.0});
  int seen = 0;
  dispatcher.SetUsersWorkObserver([&] { ++seen; });
  const auto flow = dispatcher.AddFlow("ann", 1);
  const auto add = [&](auto work) { dispatcher.Enqueue(flow, std::move(work)); };
  now += absl::Seconds(10);
  add(std::make_shared<DaemonsWork>(&journal_, "own", 9.0));
  EXPECT_FALSE(dispatcher.users_work().is_there);
  EXPECT_EQ(dispatcher.users_work().last, absl::UnixEpoch());
  EXPECT_EQ(seen, 0);
  // It waits, runs, and ends.
  add(std::make_shared<RecordedWork>(&journal_, "users", 9.0));
  EXPECT_TRUE(dispatcher.users_work().is_there);
  EXPECT_EQ(dispatcher.users_work().last, absl::UnixEpoch() + absl::Seconds(10));
  EXPECT_EQ(seen, 1);
  dispatcher.Finished(journal_.tickets[0], 9.0);
  EXPECT_THAT(journal_.submitted, ElementsAre("own", "users"));
  EXPECT_TRUE(dispatcher.users_work().is_there);
  now += absl::Seconds(10);
  dispatcher.Finished(journal_.tickets[1], 9.0);
  EXPECT_FALSE(dispatcher.users_work().is_there);
  EXPECT_EQ(dispatcher.users_work().last, absl::UnixEpoch() + absl::Seconds(20));
  // Work that is refused, or leaves the queue, is not there either.
  add(std::make_shared<RecordedWork>(&journal_, "bad", 1.0, absl::InternalError("bad")));
  add(std::make_shared<DaemonsWork>(&journal_, "own", 9.0));
  add(std::make_shared<RecordedWork>(&journal_, "left", 9.0));
  EXPECT_TRUE(dispatcher.users_work().is_there);
  dispatcher.RemoveFlow(flow);
  EXPECT_FALSE(dispatcher.users_work().is_there);
  dispatcher.Finished(journal_.tickets.back(), 9.0);
  EXPECT_EQ(seen, 3);
}

// As for a device that is closed when idle. Sanitizers detect late accesses.
TEST(Dispatcher, MayBeDestroyedOnceItIsIdle) {
  for (int i = 0; i < 1000; ++i) {
    Journal journal;
    auto dispatcher = std::make_unique<Dispatcher>("cpu:0", absl::Now, QueueLimits());
    dispatcher->Enqueue(dispatcher->AddFlow("ann", 1),
                        std::make_shared<RecordedWork>(&journal, "a", 1e-6));
    std::thread device(
        [d = dispatcher.get(), ticket = journal.tickets.at(0)] { d->Finished(ticket, 1e-6); });
    EXPECT_TRUE(dispatcher->WaitIdle(absl::InfiniteDuration()));
    dispatcher.reset();
    device.join();
  }
}

TEST_F(DispatcherTest, KeepsFewLongListsInFlight) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c"}) Add(flow, name, 1.0);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "b"));
  EXPECT_EQ(dispatcher_.queued(), 1);
  dispatcher_.Finished(journal_.tickets[0], 1.0);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "b", "c"));
}

TEST_F(DispatcherTest, KeepsMoreShortListsInFlight) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(flow, name, 1e-6);
  EXPECT_EQ(journal_.submitted.size(), 4);
  EXPECT_EQ(dispatcher_.queued(), 1);
}

TEST_F(DispatcherTest, NewcomerGoesBeforeABacklog) {
  const auto busy = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c", "d"}) Add(busy, name, 1.0);
  const auto newcomer = dispatcher_.AddFlow("bob", 1);
  Add(newcomer, "new", 1.0);
  dispatcher_.Finished(journal_.tickets[0], 1.0);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "b", "new"));
}

TEST_F(DispatcherTest, RefusedWorkFailsAndFreesItsPlace) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  Add(flow, "bad", 1.0, absl::InvalidArgumentError("too small"));
  EXPECT_THAT(journal_.failed, ElementsAre("bad:too small"));
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(DispatcherTest, RemovedFlowFailsWhatWaits) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c"}) Add(flow, name, 1.0);
  dispatcher_.RemoveFlow(flow);
  EXPECT_THAT(journal_.failed, ElementsAre("c:the session was closed"));
  Add(flow, "late", 1.0);
  EXPECT_THAT(journal_.failed,
              ElementsAre("c:the session was closed", "late:the session was closed"));
  dispatcher_.Finished(journal_.tickets[0], 1.0);
  dispatcher_.Finished(journal_.tickets[1], 1.0);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(DispatcherTest, StopFailsWaitingAndNewWork) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c"}) Add(flow, name, 1.0);
  dispatcher_.Stop(absl::UnavailableError("stopping"));
  Add(flow, "late", 1.0);
  EXPECT_THAT(journal_.failed, ElementsAre("c:stopping", "late:stopping"));
  EXPECT_FALSE(dispatcher_.WaitIdle(absl::Milliseconds(5)));
  dispatcher_.Finished(journal_.tickets[0], 0.5);
  dispatcher_.Finished(journal_.tickets[1], 0.25);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
  EXPECT_DOUBLE_EQ(dispatcher_.device_seconds(), 0.75);
}

TEST_F(DispatcherTest, TwoListsInFlightTakeHalfASliceAtMost) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b"}) Add(flow, name, 1.5);
  EXPECT_THAT(journal_.submitted, ElementsAre("a"));
  dispatcher_.Finished(journal_.tickets[0], 1.5);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "b"));
}

// Work in pieces of a second, handed over one by one.
class SlicedWork : public RecordedWork {
 public:
  SlicedWork(Journal* journal, std::string name, int pieces)
      : RecordedWork(journal, std::move(name), 1.0), left_(pieces) {}
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    if (needs_room_ > 0) {
      --needs_room_;
      if (without_room_) without_room_();
      return Handed::kNoRoom;
    }
    if (during_submit_) during_submit_();
    absl::StatusOr<Handed> handed = RecordedWork::Submit(ticket, waited);
    if (handed.ok() && --left_ > 0) handed = Handed::kSome;
    return handed;
  }
  bool is_wanted() const override { return wanted_; }

  int needs_room_ = 0;  // how often it finds no room
  bool wanted_ = true;
  std::function<void()> during_submit_;
  std::function<void()> without_room_;

 private:
  int left_;
};

class SlicedWorkTest : public DispatcherTest {
 protected:
  std::shared_ptr<SlicedWork> AddSliced(FairQueue::FlowId flow, const std::string& name,
                                        int pieces) {
    auto work = std::make_shared<SlicedWork>(&journal_, name, pieces);
    dispatcher_.Enqueue(flow, work);
    return work;
  }
  void Finish(size_t piece) { dispatcher_.Finished(journal_.tickets.at(piece), 1.0); }
};

TEST_F(SlicedWorkTest, OthersComeInBetweenAndTheFlowKeepsItsOrder) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  AddSliced(ann, "a", 4);
  Add(ann, "next", 1.0);
  Add(bob, "b", 1.0);
  for (size_t piece = 0; piece < 6; ++piece) Finish(piece);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a", "b", "a", "a", "next"));
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(SlicedWorkTest, StopsAtTheNextSliceWhenItsFlowGoes) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  AddSliced(ann, "a", 4);
  EXPECT_FALSE(dispatcher_.WaitIdle(absl::ZeroDuration()));
  dispatcher_.RemoveFlow(ann);
  EXPECT_THAT(journal_.failed, ElementsAre("a:the session was closed"));
  for (size_t piece = 0; piece < 2; ++piece) Finish(piece);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a"));
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(SlicedWorkTest, FailsOnceIfItsFlowGoesWhileItIsHandedOver) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  auto work = std::make_shared<SlicedWork>(&journal_, "a", 4);
  work->during_submit_ = [&] { dispatcher_.RemoveFlow(ann); };
  dispatcher_.Enqueue(ann, work);
  EXPECT_THAT(journal_.failed, ElementsAre("a:the session was closed"));
  EXPECT_THAT(journal_.submitted, ElementsAre("a"));
  Finish(0);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(SlicedWorkTest, WhatIsNotWantedIsDroppedAlone) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  const auto a = AddSliced(ann, "a", 4);
  Add(ann, "b", 1.0);
  const auto c = AddSliced(ann, "c", 2);
  a->wanted_ = c->wanted_ = false;
  dispatcher_.DropUnwanted(ann);
  EXPECT_THAT(journal_.failed,
              ElementsAre("a:cancelled by the client", "c:cancelled by the client"));
  for (size_t piece = 0; piece < 3; ++piece) Finish(piece);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a", "b"));
}

// DropUnwanted finds neither work that is still to be queued nor work that is being submitted.
TEST_F(SlicedWorkTest, WhatIsNotWantedFailsAtOnce) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  AddSliced(ann, "running", 1);
  const auto cancel = [&](SlicedWork& work) {
    work.wanted_ = false;
    dispatcher_.DropUnwanted(ann);
  };
  auto late = std::make_shared<SlicedWork>(&journal_, "late", 1);
  cancel(*late);
  dispatcher_.Enqueue(ann, late);
  EXPECT_THAT(journal_.failed, ElementsAre("late:cancelled by the client"));
  auto waits = std::make_shared<SlicedWork>(&journal_, "waits", 1);
  waits->needs_room_ = 1;
  waits->without_room_ = [&] { cancel(*waits); };
  dispatcher_.Enqueue(ann, waits);
  EXPECT_THAT(journal_.failed,
              ElementsAre("late:cancelled by the client", "waits:cancelled by the client"));
  EXPECT_EQ(dispatcher_.queued(), 0);
  Finish(0);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(SlicedWorkTest, WhatHasBegunEndsAfterAStop) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  AddSliced(ann, "a", 4);
  Add(ann, "b", 1.0);
  dispatcher_.Stop(absl::UnavailableError("stopping"));
  EXPECT_THAT(journal_.failed, ElementsAre("b:stopping"));
  for (size_t piece = 0; piece < 3; ++piece) Finish(piece);
  EXPECT_FALSE(dispatcher_.WaitIdle(absl::ZeroDuration()));
  Finish(3);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(SlicedWorkTest, WhatHasNoRoomLetsOthersPassAndIsAskedAgain) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  AddSliced(ann, "a", 3);
  auto big = std::make_shared<SlicedWork>(&journal_, "big", 1);
  big->needs_room_ = 1;
  dispatcher_.Enqueue(bob, big);
  Finish(0);  // "big" is next and does not fit
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a", "a"));
  Finish(1);
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a", "a", "big"));
  EXPECT_THAT(journal_.failed, IsEmpty());
}

TEST_F(SlicedWorkTest, WhatHasNoRoomNeedNotWaitForAnEndOnceThereIsSome) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  AddSliced(ann, "a", 1);
  auto big = std::make_shared<SlicedWork>(&journal_, "big", 1);
  big->needs_room_ = 1;
  dispatcher_.Enqueue(bob, big);
  dispatcher_.LookAgain();
  EXPECT_THAT(journal_.submitted, ElementsAre("a")) << "it waits";
  dispatcher_.ReleaseHeld();
  dispatcher_.LookAgain();
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "big"));
  for (size_t piece = 0; piece < 2; ++piece) Finish(piece);
}

TEST_F(SlicedWorkTest, NobodyWaitsForMemoryThatADroppedRunHeld) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  auto holder = std::make_shared<SlicedWork>(&journal_, "a", 4);
  dispatcher_.Enqueue(ann, holder);
  auto big = std::make_shared<SlicedWork>(&journal_, "big", 1);
  big->needs_room_ = 3;
  dispatcher_.Enqueue(bob, big);
  Finish(0);
  dispatcher_.RemoveFlow(ann);
  Finish(1);
  Finish(2);  // the last list in flight
  EXPECT_THAT(journal_.submitted, ElementsAre("a", "a", "a", "big"));
}

// One device's part of work on several devices.
class PartOfPiece : public RecordedWork {
 public:
  PartOfPiece(Journal* journal, std::function<void(int64_t ticket)> on_submit)
      : RecordedWork(journal, "joint", 1.0), on_submit_(std::move(on_submit)) {}
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    on_submit_(ticket);
    return RecordedWork::Submit(ticket, waited);
  }

 private:
  const std::function<void(int64_t ticket)> on_submit_;
};

TEST_F(SlicedWorkTest, WhatHasBegunAndIsParkedKeepsItsMemory) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  const auto second = std::make_shared<PartOfPiece>(
      &journal_, [&](int64_t ticket) { dispatcher_.Park(ticket, /*has_begun=*/true); });
  dispatcher_.Enqueue(ann, std::make_shared<PartOfPiece>(&journal_, [&](int64_t ticket) {
                        EXPECT_TRUE(dispatcher_.Continue(ticket, second, 1.0));
                      }));
  Add(ann, "next", 1.0);
  EXPECT_THAT(journal_.submitted, ElementsAre("joint", "joint"));
  Finish(0);
  EXPECT_FALSE(dispatcher_.WaitIdle(absl::ZeroDuration()));
  auto big = std::make_shared<SlicedWork>(&journal_, "big", 1);
  big->needs_room_ = 1;
  dispatcher_.Enqueue(bob, big);
  EXPECT_THAT(journal_.submitted, ElementsAre("joint", "joint")) << "big is not asked in vain";
  dispatcher_.Unpark(journal_.tickets.at(1));
  Finish(1);
  EXPECT_THAT(journal_.submitted, ElementsAre("joint", "joint", "big", "next"));
  Finish(2);
  Finish(3);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

// Work that is submitted whole and may end early.
class YieldingWork : public Work {
 public:
  YieldingWork(Journal* journal, std::string name) : journal_(journal), name_(std::move(name)) {}
  double predicted_seconds() const override { return 4.0; }
  std::string label() const override { return name_; }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    journal_->submitted.push_back(name_);
    journal_->tickets.push_back(ticket);
    return Handed::kAlone;
  }
  void Fail(const absl::Status& status) override { journal_->failed.push_back(name_); }

 private:
  Journal* journal_;
  std::string name_;
};

TEST_F(DispatcherTest, AListGoesOnWhileNobodyWaits) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  dispatcher_.Enqueue(ann, std::make_shared<YieldingWork>(&journal_, "long"));
  Add(ann, "next", 1e-6);
  EXPECT_THAT(journal_.submitted, ElementsAre("long")) << "nothing of its flow is behind it";
  const int64_t ticket = journal_.tickets[0];
  EXPECT_TRUE(dispatcher_.GoesOn(ticket, 4));
  EXPECT_TRUE(dispatcher_.GoesOn(ticket, 8));
  Add(bob, "other", 1.0);
  EXPECT_FALSE(dispatcher_.GoesOn(ticket, 12));
  EXPECT_TRUE(dispatcher_.GoesOn(/*ticket=*/99, 4));
}

TEST_F(DispatcherTest, TheRestOfAListComesBeforeTheRestOfItsFlowAndAfterOthers) {
  const auto ann = dispatcher_.AddFlow("ann", 1), bob = dispatcher_.AddFlow("bob", 1);
  const auto work = std::make_shared<YieldingWork>(&journal_, "long");
  dispatcher_.Enqueue(ann, work);
  Add(ann, "next", 1e-6);
  Add(bob, "other", 1.0);
  EXPECT_FALSE(dispatcher_.GoesOn(journal_.tickets[0], 4));
  EXPECT_TRUE(dispatcher_.Continue(journal_.tickets[0], work, 4.0));
  EXPECT_THAT(journal_.submitted, ElementsAre("long"));
  dispatcher_.Finished(journal_.tickets[0], 4);
  EXPECT_THAT(journal_.submitted, ElementsAre("long", "other"));
  dispatcher_.Finished(journal_.tickets[1], 1);
  EXPECT_THAT(journal_.submitted, ElementsAre("long", "other", "long"));
  dispatcher_.Finished(journal_.tickets[2], 4);
  EXPECT_THAT(journal_.submitted, ElementsAre("long", "other", "long", "next"));
  EXPECT_THAT(journal_.failed, IsEmpty());
}

TEST_F(DispatcherTest, TheRestOfAListIsGoneWithItsFlow) {
  const auto ann = dispatcher_.AddFlow("ann", 1);
  const auto work = std::make_shared<YieldingWork>(&journal_, "long");
  dispatcher_.Enqueue(ann, work);
  dispatcher_.RemoveFlow(ann);
  EXPECT_FALSE(dispatcher_.Continue(journal_.tickets[0], work, 4.0));
  dispatcher_.Finished(journal_.tickets[0], 4);
  EXPECT_TRUE(dispatcher_.WaitIdle(absl::ZeroDuration()));
}

TEST_F(DispatcherTest, UnknownTicketIsIgnored) {
  dispatcher_.Finished(99, 1.0);
  EXPECT_THAT(journal_.submitted, IsEmpty());
}

// Calls the dispatcher from label(), which would deadlock if its lock were held.
class AskingWork : public RecordedWork {
 public:
  AskingWork(const Dispatcher* dispatcher, Journal* journal, std::string name)
      : RecordedWork(journal, std::move(name), 1.0), dispatcher_(dispatcher) {}
  std::string label() const override {
    EXPECT_GE(dispatcher_->queued(), 0);
    return RecordedWork::label();
  }

 private:
  const Dispatcher* dispatcher_;
};

class DispatcherLogTest : public DispatcherTest {
 protected:
  void SetUp() override {
    log::SetLevel(log::Level::kDebug);
    testing::internal::CaptureStderr();
  }
  void TearDown() override { log::SetLevel(log::Level::kInfo); }
  void Ask(FairQueue::FlowId flow, const std::string& name) {
    dispatcher_.Enqueue(flow, std::make_shared<AskingWork>(&dispatcher_, &journal_, name));
  }
  // The events in the log's order: "queued a".
  static std::vector<std::string> Events(const std::string& written) {
    std::vector<std::string> events;
    for (const absl::string_view line : absl::StrSplit(written, '\n', absl::SkipEmpty())) {
      std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
      events.push_back(absl::StrCat(absl::StripPrefix(fields[2], "event=run_"), " ",
                                    absl::StripPrefix(fields[3], "run=")));
    }
    return events;
  }
};

TEST_F(DispatcherLogTest, TellsOfTheQueueInItsOrderWithoutTheLock) {
  const auto flow = dispatcher_.AddFlow("ann", 1);
  for (const char* name : {"a", "b", "c"}) Ask(flow, name);
  dispatcher_.Finished(journal_.tickets[0], 1.0);
  EXPECT_THAT(Events(testing::internal::GetCapturedStderr()),
              ElementsAre("queued a", "chosen a", "queued b", "chosen b", "queued c", "chosen c"));
}

TEST_F(DispatcherLogTest, WhatIsChosenWasQueuedWhoeverWrites) {
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  const auto flow = dispatcher_.AddFlow("ann", 1);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) Ask(flow, absl::StrCat(thread, ".", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < journal_.tickets.size(); ++i) {
    dispatcher_.Finished(journal_.tickets[i], 1.0);
  }
  std::set<std::string> queued;
  int chosen = 0;
  for (const std::string& event : Events(testing::internal::GetCapturedStderr())) {
    absl::string_view run = event;
    if (absl::ConsumePrefix(&run, "queued ")) {
      queued.emplace(run);
    } else if (absl::ConsumePrefix(&run, "chosen ")) {
      ++chosen;
      EXPECT_TRUE(queued.contains(std::string(run))) << run;
    }
  }
  EXPECT_EQ(queued.size(), kThreads * kEach);
  EXPECT_EQ(chosen, kThreads * kEach);
}

}  // namespace
}  // namespace kiln::fairness
