// Random mixes of runs on several overlapping devices and of runs on one, from several threads:
// everything ends, and every result that was not cancelled is right. The policy alone, without
// threads, is simulated in server/fairness/submission_order_test.cc.
//
// KILN_RUN_MIXES is the number of mixes, for a long search; KILN_RUN_MIXES_SEED is the number of
// the first.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/runtime/testing/multi_device_fixture.h"
#include "tests/environment.h"

namespace kiln::runtime {
namespace {

using kiln::testing::MeanGraph;
using kiln::testing::StagesGraph;

// Divisible by all mesh sizes, one to four.
constexpr int kRows = 12;

int Number(const char* variable, int otherwise) {
  return static_cast<int>(NumberFromEnvironment(variable, otherwise));
}

// The parameter: whether runs are cut into pieces.
class RunMixes : public kiln::testing::MultiDeviceTest, public ::testing::WithParamInterface<bool> {
 protected:
  RunMixes() {
    if (GetParam()) CutAll();
  }
  struct Issued {
    Created created;
    float scale = 1;        // of its input
    bool is_wanted = true;  // neither the run nor a run that it depends on was cancelled
  };
  // One user's session: one thread queues runs, another one cancels them at any moment.
  struct User {
    int number = 0;
    std::mt19937 random;
    std::map<std::vector<int>, size_t> last;  // by places: index in issued
    absl::Mutex mutex;
    std::deque<Issued> issued ABSL_GUARDED_BY(mutex);
    bool has_ended ABSL_GUARDED_BY(mutex) = false;  // the session
    int64_t events ABSL_GUARDED_BY(mutex) = 0;      // runs queued, and ends noticed
    bool is_over ABSL_GUARDED_BY(mutex) = false;    // nothing more is queued
    int below(int count) { return static_cast<int>(random() % count); }
  };

  // Compiles one program for each ordered choice of one to four devices.
  void CompileAll() {
    std::vector<int> order(devices_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    do {
      for (size_t size = 1; size <= std::min<size_t>(order.size(), 4); ++size) {
        const std::vector<int> places(order.begin(), order.begin() + static_cast<int>(size));
        if (programs_.contains(places)) continue;
        // Every other one in stages.
        const bool in_stages = places_.size() % 2 == 1;
        const auto devices = static_cast<int>(size);
        std::string text = in_stages ? StagesGraph(devices, kRows) : MeanGraph(devices, kRows);
        if (size == 1) text = OnOneDevice();
        const auto bound = Compile(text, places);
        ASSERT_NE(bound, nullptr) << compiled_;
        inputs_[places] = Input(*bound, 0);
        programs_[places] = bound;
        places_.push_back(places);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  static std::string OnOneDevice() {
    return absl::StrCat("input 0 float32[", kRows, ",8]\n%0 = input float32[", kRows,
                        ",8] index=0\n", "%1 = reduce_sum float32[1,8] %0 axes=[0]\n",
                        "%2 = expand float32[", kRows, ",8] %1\n%3 = add float32[", kRows,
                        ",8] %0 %2\n%4 = add float32[", kRows,
                        ",8] %0 %0\noutput %3\noutput %1\nupdate 0 %4\n");
  }

  void RunAll(int count, bool computes) {
    CompileAll();
    if (HasFatalFailure()) return;
    const int first = Number("KILN_RUN_MIXES_SEED", 1);
    computes_ = computes;
    for (int seed = first; seed < first + count && !HasFailure(); ++seed) {
      // If threads wait for one another forever, the last line tells the mix.
      std::fprintf(stderr, "KILN_RUN_MIXES_SEED=%d\n", seed);
      SCOPED_TRACE(absl::StrCat("KILN_RUN_MIXES_SEED=", seed));
      RunMix(seed);
    }
    ExpectNothingLeft();
  }

  void RunMix(int seed) {
    std::mt19937 random(seed);
    std::vector<User> users(1 + random() % 4);
    std::vector<std::thread> threads;
    for (User& user : users) {
      user.number = static_cast<int>(&user - users.data());
      user.random.seed(random());
      threads.emplace_back([this, &user] { QueueRuns(user); });
      if (random() % 3 == 0) continue;
      threads.emplace_back([this, &user, seed = random()] { Disturb(user, seed); });
    }
    for (std::thread& thread : threads) thread.join();
    for (User& user : users) Check(user);
    if (!broken_.empty()) ReviveAll();
  }

  void ReviveAll() {
    for (size_t i = 0; i < broken_.size(); ++i) {
      *broken_[i] = false;
      devices_[i]->CheckHealth();
      EXPECT_TRUE(devices_[i]->WaitIdle(absl::InfiniteDuration()));
      devices_[i]->TryRevive();
      EXPECT_EQ(devices_[i]->health(), Health::kHealthy);
    }
    for (auto& [places, input] : inputs_) input = Input(*programs_.at(places), 0);
  }

  void QueueRuns(User& user) {
    const int runs = 1 + user.below(16);
    const size_t depth = 1 + user.below(12);
    const int devices = 1 + user.below(static_cast<int>(devices_.size()));  // the first ones
    for (int i = 0; i < runs; ++i) {
      AwaitAllBut(user, depth - 1);
      Issue(user, devices);
      if (user.below(4) == 0) std::this_thread::yield();
      if (user.below(8) == 0) Compute(user.below(200));
    }
    AwaitAllBut(user, 0);
    absl::MutexLock lock(&user.mutex);
    user.is_over = true;
  }

  void Disturb(User& user, unsigned seed) {
    std::mt19937 random(seed);
    while (AwaitEvents(user, static_cast<int>(random() % 3))) {
      Compute(static_cast<int>(random() % 200));
      if (random() % 32 == 0) {
        EndSession(user);
      } else if (!broken_.empty() && random() % 2 == 0) {
        LoseOrRevive(random);
      } else {
        CancelSome(user, random);
      }
    }
  }

  // Takes some microseconds for each step, on any core.
  static void Compute(int steps) { std::mt19937().discard(uint64_t{100} * steps); }

  static void Happens(User& user) {
    absl::MutexLock lock(&user.mutex);
    ++user.events;
  }

  // Waits for this many more events; returns false if there will be no more.
  static bool AwaitEvents(User& user, int count) {
    absl::MutexLock lock(&user.mutex);
    const int64_t last = user.events + count;
    const auto has_come = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return user.is_over || user.events >= last;
    };
    user.mutex.Await(absl::Condition(&has_come));
    return !user.is_over;
  }

  // Chooses the devices of a run, and its input.
  void Issue(User& user, int devices) {
    const std::vector<int>* places = nullptr;
    do {
      places = &places_[user.below(static_cast<int>(places_.size()))];
    } while (*std::max_element(places->begin(), places->end()) >= devices);
    const auto last = user.last.find(*places);
    ValuePointer input = inputs_.at(*places);
    Issued issued;
    const bool goes_on = last != user.last.end() && user.below(2) == 0;
    if (goes_on) {
      absl::MutexLock lock(&user.mutex);
      const Issued& before = user.issued[last->second];
      input = before.created.results.back();
      issued.scale = 2 * before.scale;
    }
    Created created = Create(programs_.at(*places), input);
    if (created.run == nullptr) {
      EXPECT_TRUE(!broken_.empty() && absl::IsUnavailable(*created.status)) << *created.status;
      return;
    }
    {
      absl::MutexLock lock(&user.mutex);
      issued.created = created;
      issued.is_wanted = !user.has_ended && (!goes_on || user.issued[last->second].is_wanted);
      user.last[*places] = user.issued.size();
      user.issued.push_back(std::move(issued));
    }
    // It may be cancelled before it is queued everywhere.
    Enqueue(created, user.number);
    Happens(user);
  }

  // Loses a device, or tries to revive one that was lost.
  void LoseOrRevive(std::mt19937& random) {
    const size_t device = random() % broken_.size();
    *broken_[device] = random() % 4 == 0;
    devices_[device]->TryRevive();
  }

  // Cancels from one run on, as a client does: runs that depend on it follow it.
  void CancelSome(User& user, std::mt19937& random) {
    {
      absl::MutexLock lock(&user.mutex);
      if (user.issued.empty()) return;
      for (size_t i = random() % user.issued.size(); i < user.issued.size(); ++i) {
        user.issued[i].is_wanted = false;
        user.issued[i].created.run->Cancel();
      }
    }
    if (random() % 8 != 0) StopUnwanted(user);
  }

  void StopUnwanted(const User& user) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      devices_[i]->dispatcher().DropUnwanted(flows_[i][user.number]);
      devices_[i]->device().StopUnwanted();
    }
  }

  void EndSession(User& user) {
    {
      absl::MutexLock lock(&user.mutex);
      user.has_ended = true;
      for (Issued& issued : user.issued) issued.is_wanted = false;
    }
    for (size_t i = 0; i < devices_.size(); ++i)
      devices_[i]->dispatcher().RemoveFlow(flows_[i][user.number]);
    {
      absl::MutexLock lock(&user.mutex);
      for (Issued& issued : user.issued)
        issued.created.run->Stop(absl::CancelledError("the session was closed"));
    }
    StopUnwanted(user);
  }

  void AwaitAllBut(User& user, size_t count) {
    std::vector<Created> awaited;
    {
      absl::MutexLock lock(&user.mutex);
      for (size_t i = 0; i + count < user.issued.size(); ++i)
        awaited.push_back(user.issued[i].created);
    }
    for (const Created& created : awaited) {
      const bool had_ended = created.ended->HasBeenNotified();
      // Also if it had ended: ThreadSanitizer needs this order between a run's end and reading its
      // data.
      created.ended->WaitForNotification();
      if (!had_ended) Happens(user);
    }
  }

  void Check(User& user) {
    absl::MutexLock lock(&user.mutex);
    for (const Issued& issued : user.issued) Check(issued);
    if (!user.has_ended) return;
    for (size_t i = 0; i < devices_.size(); ++i) {
      flows_[i][user.number] =
          devices_[i]->dispatcher().AddFlow(absl::StrCat("user", user.number), 1);
    }
  }

  void Check(const Issued& issued) const {
    const absl::Status& status = *issued.created.status;
    const bool may_be_cancelled = !issued.is_wanted;
    const bool may_be_lost = !broken_.empty();
    EXPECT_TRUE(status.ok() || (may_be_cancelled && absl::IsCancelled(status)) ||
                (may_be_lost && absl::IsUnavailable(status)))
        << status;
    for (const ValuePointer& result : issued.created.results) {
      EXPECT_TRUE(result->resolved());
      EXPECT_EQ(result->status().ok(), status.ok()) << result->status() << status;
    }
    if (status.ok() && computes_) CheckNumbers(issued);
  }

  static void CheckNumbers(const Issued& issued) {
    const std::vector<float> sums = Whole(*issued.created.results[1]);
    const std::vector<float> results = Whole(*issued.created.results[0]);
    for (int c = 0; c < 8; ++c) {
      ASSERT_EQ(sums[c], issued.scale * static_cast<float>(4 * kRows * (kRows - 1) + kRows * c));
      for (int r = 0; r < kRows; ++r)
        ASSERT_EQ(results[8 * r + c], issued.scale * static_cast<float>(8 * r + c) + sums[c]);
    }
  }

  void ExpectNothingLeft() {
    for (const auto& device : devices_) {
      EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration())) << device->name();
      EXPECT_EQ(device->dispatcher().queued(), 0) << device->name();
    }
    inputs_.clear();
    programs_.clear();
    for (size_t i = 0; i < devices_.size(); ++i) {
      EXPECT_EQ(accounts_[i]->bytes(), 0) << devices_[i]->name();
      EXPECT_EQ(accounts_[i]->buffers(), 0) << devices_[i]->name();
      devices_[i]->arenas().DropIdle();
      EXPECT_EQ(devices_[i]->pool()->used_bytes(), 0) << devices_[i]->name();
    }
  }

  std::vector<std::vector<int>> places_;
  std::map<std::vector<int>, std::shared_ptr<const BoundProgram>> programs_;
  std::map<std::vector<int>, ValuePointer> inputs_;
  bool computes_ = false;
  // By device; empty: none is ever lost.
  std::vector<std::shared_ptr<std::atomic<bool>>> broken_;
};

TEST_P(RunMixes, OnProcessors) {
  UseCpus(4);
  RunAll(Number("KILN_RUN_MIXES", 40), /*computes=*/true);
}

// With threads that run one another's lists.
TEST_P(RunMixes, OnMoreProcessorsThanCores) {
  UseCpus(4, 2);
  RunAll(Number("KILN_RUN_MIXES", 40), /*computes=*/true);
}

TEST_P(RunMixes, OnDevicesThatRunNothing) {
  UseNulls(5, [] { return absl::OkStatus(); });
  RunAll(Number("KILN_RUN_MIXES", 100), /*computes=*/false);
}

TEST_P(RunMixes, OnDevicesThatAreLost) {
  for (int i = 0; i < 4; ++i) {
    const auto broken = std::make_shared<std::atomic<bool>>(false);  // devices ask until their end
    UseNulls(1, [broken] { return *broken ? absl::InternalError("unplugged") : absl::OkStatus(); });
    broken_.push_back(broken);
  }
  RunAll(Number("KILN_RUN_MIXES", 100), /*computes=*/false);
}

INSTANTIATE_TEST_SUITE_P(Runs, RunMixes, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "InPieces" : "Whole"; });

}  // namespace
}  // namespace kiln::runtime
