#include "drivers/cpu/worker_pool.h"

#include <sys/types.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/cpu/thread_control.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers::cpu {
namespace {

using kiln::testing::Eventually;

void CountTasks(const void* context, int64_t begin, int64_t end, void* scratch) {
  // The scratch must be writable up to its end.
  static_cast<volatile char*>(scratch)[WorkerPool::kScratchBytes - 1] = 1;
  auto* counters = static_cast<std::atomic<int>* const*>(context);
  for (int64_t i = begin; i < end; ++i) (*counters)[i].fetch_add(1, std::memory_order_relaxed);
}

TEST(WorkerPoolTest, EveryTaskRunsOnce) {
  for (int threads : {1, 2, 5}) {
    WorkerPool pool({.name = "test", .threads = threads});
    for (int64_t tasks : {1, 2, 17, 1000}) {
      std::vector<std::atomic<int>> counters(tasks);
      std::atomic<int>* context = counters.data();
      for (int64_t chunk : {int64_t{1}, int64_t{3}, tasks, tasks + 5}) {
        for (int i = 0; i < 50; ++i) pool.Run({CountTasks, &context, tasks, chunk});
      }
      for (auto& counter : counters) ASSERT_EQ(counter, 200);
    }
  }
}

TEST(WorkerPoolTest, TakesTheMostChunks) {
  WorkerPool pool({.name = "test", .threads = 3});
  std::vector<std::atomic<int>> counters(WorkerPool::kChunksMax);
  std::atomic<int>* context = counters.data();
  for (int i = 0; i < 20; ++i) pool.Run({CountTasks, &context, WorkerPool::kChunksMax, 1});
  for (auto& counter : counters) ASSERT_EQ(counter, 20);
}

// The thread that gets the first tasks continues only when all other tasks have ended.
struct StalledJob {
  static constexpr int64_t kTasks = 64;
  std::atomic<int64_t> ended_elsewhere = 0;
  std::atomic<int64_t> stalled_tasks = 0;
  std::atomic<bool> others_did_the_rest = false;

  static void Run(const void* context, int64_t begin, int64_t end, void*) {
    auto* job = static_cast<StalledJob*>(const_cast<void*>(context));
    if (begin > 0) {
      job->ended_elsewhere += end - begin;
      return;
    }
    job->stalled_tasks = end;
    job->others_did_the_rest =
        Eventually([&] { return job->ended_elsewhere == kTasks - job->stalled_tasks; });
  }
};

TEST(WorkerPoolTest, OthersDoWhatAStalledThreadHasNotTaken) {
  for (int threads : {2, 3}) {
    WorkerPool pool({.name = "test", .threads = threads});
    StalledJob job;
    pool.Run({StalledJob::Run, &job, StalledJob::kTasks, 1});
    EXPECT_TRUE(job.others_did_the_rest);
    EXPECT_LE(job.stalled_tasks, StalledJob::kTasks / threads / 4);
  }
}

// Ends when `threads` threads have arrived.
struct Meeting {
  int64_t threads = 0;
  std::atomic<int64_t> here = 0;
  std::atomic<bool> met = true;

  static void Run(const void* context, int64_t begin, int64_t end, void*) {
    auto* meeting = static_cast<Meeting*>(const_cast<void*>(context));
    meeting->here += 1;
    if (!Eventually([&] { return meeting->here == meeting->threads; })) meeting->met = false;
  }
};

// Records which threads run a job of short tasks.
struct Attendance {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> others = false;

  static void Run(const void* context, int64_t begin, int64_t end, void*) {
    auto* attendance = static_cast<Attendance*>(const_cast<void*>(context));
    if (std::this_thread::get_id() != attendance->caller) attendance->others = true;
    std::this_thread::yield();
  }
};

TEST(WorkerPoolTest, ThreadsFollowTheNumberOfCores) {
  std::atomic<int> cores = 4, asked = 0;
  std::atomic<WorkerPool::Clock::time_point> now{};
  WorkerPool pool({.name = "test",
                   .threads = 4,
                   .cores =
                       [&] {
                         ++asked;
                         return cores.load();
                       },
                   .now = [&] { return now.load(); }});
  auto meet = [&](int64_t threads) {
    Meeting meeting{.threads = threads};
    pool.Run({Meeting::Run, &meeting, threads, 1});
    EXPECT_TRUE(meeting.met) << threads << " threads";
  };
  auto others_work = [&] {
    Attendance attendance;
    pool.Run({Attendance::Run, &attendance, 40, 1});
    return attendance.others.load();
  };
  meet(4);
  cores = 1;
  now = now.load() + WorkerPool::kCoresInterval;
  // A worker that read the old number may still help with one job.
  others_work();
  EXPECT_TRUE(Eventually([&] { return pool.sitting_out() == 3; }));
  EXPECT_FALSE(others_work());
  cores = 3;
  const int asked_before = asked;
  EXPECT_FALSE(others_work());
  EXPECT_EQ(asked, asked_before) << "less than the interval ago";
  now = now.load() + WorkerPool::kCoresInterval;
  meet(3);
  cores = 0;
  now = now.load() + WorkerPool::kCoresInterval;
  others_work();
  EXPECT_TRUE(Eventually([&] { return pool.sitting_out() == 3; }));
  EXPECT_FALSE(others_work()) << "the caller is always there";
  cores = 100;
  now = now.load() + WorkerPool::kCoresInterval;
  meet(4);
}

TEST(WorkerPoolTest, EndsWhileThreadsSitOut) {
  WorkerPool pool({.name = "test", .threads = 4, .cores = [] { return 1; }});
  Attendance attendance;
  pool.Run({Attendance::Run, &attendance, 1, 1});
  EXPECT_TRUE(Eventually([&] { return pool.sitting_out() == 3; }));
}

// Whether the thread sleeps, that is, is neither running nor runnable.
bool Sleeps(pid_t thread) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/stat"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'S';
}

// Each task is run by a different thread, which continues when all have arrived.
struct Roll {
  explicit Roll(int64_t count) : threads(count) {}
  std::vector<std::atomic<pid_t>> threads;  // by task
  std::atomic<int64_t> here = 0;

  static void Run(const void* context, int64_t begin, int64_t end, void*) {
    auto* roll = static_cast<Roll*>(const_cast<void*>(context));
    roll->threads[begin] = ThreadId();
    ++roll->here;
    while (roll->here < static_cast<int64_t>(roll->threads.size())) std::this_thread::yield();
  }
};

TEST(WorkerPoolTest, IdleWorkersSleep) {
  WorkerPool pool({.name = "test", .threads = 4});
  Roll roll(4);
  pool.Run({Roll::Run, &roll, 4, 1});
  for (const pid_t thread : roll.threads) {
    if (thread == ThreadId()) continue;
    EXPECT_TRUE(Eventually([&] { return Sleeps(thread); }));
  }
}

TEST(WorkerPoolTest, ACallerThatWaitsLongSleeps) {
  WorkerPool pool({.name = "test", .threads = 2});
  // The caller ends its task at once; the worker ends its task when the caller sleeps.
  struct Slow {
    const pid_t caller = ThreadId();
    std::atomic<int> here = 0;
    std::atomic<bool> caller_sleeps = false;

    static void Run(const void* context, int64_t, int64_t, void*) {
      auto* slow = static_cast<Slow*>(const_cast<void*>(context));
      ++slow->here;
      while (slow->here < 2) std::this_thread::yield();
      if (ThreadId() == slow->caller) return;
      slow->caller_sleeps = Eventually([&] { return Sleeps(slow->caller); });
    }
  };
  Slow slow;
  pool.Run({Slow::Run, &slow, 2, 1});
  EXPECT_TRUE(slow.caller_sleeps);
}

}  // namespace
}  // namespace kiln::drivers::cpu
