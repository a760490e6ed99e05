#include "drivers/cpu/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void CountTasks(const void* context, int64_t begin, int64_t end, void* scratch) {
  // The scratch must be writable to its end.
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
  std::vector<std::atomic<int>> counters(WorkerPool::kMaxChunks);
  std::atomic<int>* context = counters.data();
  for (int i = 0; i < 20; ++i) pool.Run({CountTasks, &context, WorkerPool::kMaxChunks, 1});
  for (auto& counter : counters) ASSERT_EQ(counter, 20);
}

// Waits for what other threads must do, for a minute at most.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// The thread that gets the first tasks goes on only when all others have ended.
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

// Ends when as many threads as there are tasks have met.
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

// The threads that do a job of short tasks.
struct Attendance {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> others = false;

  static void Run(const void* context, int64_t begin, int64_t end, void*) {
    auto* attendance = static_cast<Attendance*>(const_cast<void*>(context));
    if (std::this_thread::get_id() != attendance->caller) attendance->others = true;
    std::this_thread::sleep_for(milliseconds(1));
  }
};

TEST(WorkerPoolTest, ThreadsFollowTheNumberOfCores) {
  std::atomic<int> cores = 4;
  std::atomic<WorkerPool::Clock::time_point> now{};
  WorkerPool pool({.name = "test",
                   .threads = 4,
                   .cores = [&] { return cores.load(); },
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
  // A worker that had looked before the change may still help with one job.
  EXPECT_TRUE(Eventually([&] { return !others_work(); }));
  cores = 3;
  EXPECT_FALSE(others_work()) << "it was asked for less than the interval ago";
  now = now.load() + WorkerPool::kCoresInterval;
  meet(3);
  cores = 0;
  now = now.load() + WorkerPool::kCoresInterval;
  EXPECT_TRUE(Eventually([&] { return !others_work(); })) << "the caller is always there";
  cores = 100;
  now = now.load() + WorkerPool::kCoresInterval;
  meet(4);
}

TEST(WorkerPoolTest, EndsWhileThreadsSitOut) {
  WorkerPool pool({.name = "test", .threads = 4, .cores = [] { return 1; }});
  Attendance attendance;
  pool.Run({Attendance::Run, &attendance, 1, 1});
}

double ProcessorSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(WorkerPoolTest, IdleWorkersSleep) {
  WorkerPool pool({.name = "test", .threads = 4});
  std::vector<std::atomic<int>> counters(100);
  std::atomic<int>* context = counters.data();
  pool.Run({CountTasks, &context, 100, 1});
  usleep(20000);
  const double before = ProcessorSeconds();
  usleep(200000);
  EXPECT_LT(ProcessorSeconds() - before, 0.02);
}

TEST(WorkerPoolTest, ACallerThatWaitsLongSleeps) {
  WorkerPool pool({.name = "test", .threads = 2});
  const double before = ProcessorSeconds();
  struct Sleep {
    static void Run(const void*, int64_t begin, int64_t, void*) {
      if (begin > 0) std::this_thread::sleep_for(milliseconds(200));
    }
  };
  pool.Run({Sleep::Run, nullptr, 2, 1});
  EXPECT_LT(ProcessorSeconds() - before, 0.1);
}

}  // namespace
}  // namespace kiln::drivers::cpu
