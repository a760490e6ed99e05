#include "server/sessions/executor.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/cache/program_cache.h"

namespace kiln::sessions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AddWaiter WaiterFor(std::shared_ptr<runtime::ProgramFuture> future) {
  return [future](std::function<void()> resume) { return future->AddWaiter(std::move(resume)); };
}

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() {
    Executor::Steps steps;
    steps.must_wait_for = [this](uint64_t sequence, const Operation&) {
      const auto found = futures_.find(sequence);
      const bool waits = found != futures_.end() && !found->second->resolved();
      return waits ? WaiterFor(found->second) : nullptr;
    };
    steps.execute = [this](uint64_t sequence, Operation&) { Note(absl::StrCat(sequence)); };
    executor_ = std::make_shared<Executor>(std::move(steps));
  }

  void Note(std::string what) {
    absl::MutexLock lock(&mutex_);
    log_.push_back(std::move(what));
  }
  std::vector<std::string> log() {
    absl::MutexLock lock(&mutex_);
    return log_;
  }
  void Add(uint64_t sequence) { executor_->Add(sequence, Barrier()); }
  void NoteWhenExecuted(uint64_t sequence) {
    executor_->WhenExecuted(sequence, [this, sequence] { Note(absl::StrCat("after ", sequence)); });
  }
  runtime::ProgramFuture& WaitsAt(uint64_t sequence) {
    return *(futures_[sequence] = std::make_shared<runtime::ProgramFuture>());
  }
  static void Resolve(runtime::ProgramFuture& future) { future.Resolve(absl::InternalError("")); }

  std::map<uint64_t, std::shared_ptr<runtime::ProgramFuture>> futures_;
  std::shared_ptr<Executor> executor_;
  absl::Mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ExecutorTest, InTheOrderInWhichTheyCame) {
  for (uint64_t i = 1; i <= 3; ++i) Add(i);
  EXPECT_THAT(log(), IsEmpty());
  Executor::Run(executor_);
  EXPECT_THAT(log(), ElementsAre("1", "2", "3"));
}

TEST_F(ExecutorTest, WhatMustWaitHoldsUpWhatFollowsAndNothingElse) {
  runtime::ProgramFuture& future = WaitsAt(2);
  for (uint64_t i = 1; i <= 3; ++i) Add(i);
  Executor::Run(executor_);
  Executor::Run(executor_);  // calls of Run meanwhile do nothing
  EXPECT_THAT(log(), ElementsAre("1"));
  Resolve(future);
  EXPECT_THAT(log(), ElementsAre("1", "2", "3"));
}

TEST_F(ExecutorTest, AsksAgainAfterWaiting) {
  runtime::ProgramFuture& first = WaitsAt(1);
  Add(1);
  Executor::Run(executor_);
  runtime::ProgramFuture* second = nullptr;
  const auto kept = futures_[1];
  second = &WaitsAt(1);
  Resolve(first);
  EXPECT_THAT(log(), IsEmpty());
  Resolve(*second);
  EXPECT_THAT(log(), ElementsAre("1"));
}

TEST_F(ExecutorTest, WaitersHearBetweenTheOperations) {
  NoteWhenExecuted(0);
  NoteWhenExecuted(2);
  NoteWhenExecuted(1);
  for (uint64_t i = 1; i <= 3; ++i) Add(i);
  Executor::Run(executor_);
  NoteWhenExecuted(3);
  EXPECT_THAT(log(), ElementsAre("after 0", "1", "after 1", "2", "after 2", "3", "after 3"));
}

TEST_F(ExecutorTest, CloseDropsWhatHasNotBegun) {
  runtime::ProgramFuture& future = WaitsAt(1);
  Add(1);
  Add(2);
  Executor::Run(executor_);
  NoteWhenExecuted(2);
  const Executor::Dropped dropped = executor_->Close();
  ASSERT_EQ(dropped.operations.size(), 2);
  EXPECT_EQ(dropped.operations.front().sequence, 1);  // including the one that waits
  EXPECT_EQ(dropped.operations.back().sequence, 2);
  ASSERT_EQ(dropped.waiters.size(), 1);
  Resolve(future);
  Add(3);
  Executor::Run(executor_);
  EXPECT_THAT(log(), IsEmpty());
  NoteWhenExecuted(9);  // called immediately: nothing more is executed
  EXPECT_THAT(log(), ElementsAre("after 9"));
}

TEST_F(ExecutorTest, WhatWaitsKeepsTheExecutor) {
  runtime::ProgramFuture& future = WaitsAt(1);
  Add(1);
  Executor::Run(executor_);
  const std::weak_ptr<Executor> weak = executor_;
  executor_.reset();
  EXPECT_FALSE(weak.expired());
  Resolve(future);
  EXPECT_THAT(log(), ElementsAre("1"));
  EXPECT_TRUE(weak.expired());
}

TEST(Executor, OneThreadAtATime) {
  constexpr uint64_t kOperations = 2000;
  std::atomic<int> inside{0};
  std::atomic<uint64_t> resolvable{0};
  int waited = 0;
  std::vector<uint64_t> order;  // no lock, so ThreadSanitizer reports concurrent execution
  std::vector<std::shared_ptr<runtime::ProgramFuture>> futures(kOperations + 1);
  for (auto& future : futures) future = std::make_shared<runtime::ProgramFuture>();
  Executor::Steps steps;
  steps.must_wait_for = [&](uint64_t sequence, const Operation&) {
    const bool waits = sequence % 5 == 0 && !futures[sequence]->resolved();
    if (waits) resolvable = sequence;
    waited += waits;
    return waits ? WaiterFor(futures[sequence]) : nullptr;
  };
  steps.execute = [&](uint64_t sequence, Operation&) {
    EXPECT_EQ(++inside, 1);
    order.push_back(sequence);
    --inside;
  };
  const auto executor = std::make_shared<Executor>(std::move(steps));
  absl::Mutex adding;
  uint64_t next = 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (bool more = true; more; Executor::Run(executor)) {
        absl::MutexLock lock(&adding);
        more = next <= kOperations;
        if (more) executor->Add(next++, Barrier());
      }
    });
  }
  threads.emplace_back([&] {
    // Resolves only futures that an operation waits for or is about to wait for.
    for (uint64_t sequence = 5; sequence <= kOperations; sequence += 5) {
      while (resolvable < sequence) std::this_thread::yield();
      futures[sequence]->Resolve(absl::InternalError(""));
    }
  });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> each_once(kOperations);
  std::iota(each_once.begin(), each_once.end(), 1);
  EXPECT_EQ(order, each_once);
  EXPECT_GT(waited, 0);
}

}  // namespace
}  // namespace kiln::sessions
