// What is the CPU driver's own; the rest is in tests/conformance.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"
#include "drivers/cpu/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

using ::testing::HasSubstr;

TEST(HostTest, TargetIsWhatThisProcessorHas) {
  auto target = DetectTarget(3);
  if (!target.ok()) GTEST_SKIP() << target.status();
  EXPECT_EQ(target->architecture, "x86-64");
  EXPECT_EQ(target->compute_units, 3);
  const bool wide = __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(target->Has("avx512f"), wide);
  EXPECT_EQ(target->Has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(target->vector_bytes == 64, wide);
  EXPECT_GE(target->near_memory_bytes, 16 << 10);
  EXPECT_GT(target->private_cache_bytes, target->near_memory_bytes);
  EXPECT_FALSE(ProcessorModel().empty());
}

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/cgroup_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    Write("none", "");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + file).parent_path());
    std::ofstream(root_ + "/" + file) << text;
  }
  int64_t Memory(const std::string& own = "none") {
    return AvailableMemory(root_, root_ + "/" + own);
  }

  std::string root_;
};

TEST_F(CgroupTest, WithoutLimitsItIsPhysicalMemory) {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  EXPECT_EQ(Memory(), physical);
  Write("memory.max", "max\n");
  EXPECT_EQ(Memory(), physical);
}

TEST_F(CgroupTest, EveryGroupOnTheWayLimits) {
  Write("own", "0::/a/b\n");
  Write("a/memory.max", "70000000\n");
  EXPECT_EQ(Memory("own"), 70000000);
  Write("a/b/memory.max", "50000000\n");
  EXPECT_EQ(Memory("own"), 50000000);
  Write("memory.max", "30000000\n");
  EXPECT_EQ(Memory("own"), 30000000);
}

TEST_F(CgroupTest, KnowsVersionOne) {
  Write("memory/memory.limit_in_bytes", "12345678\n");
  EXPECT_EQ(Memory(), 12345678);
}

TEST(DriverTest, SharesTheMachineAmongDevices) {
  std::string why_none;
  auto devices = CpuDriver({.devices = 3}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) GTEST_SKIP() << why_none;
  ASSERT_EQ(devices->size(), 3u);
  int64_t memory = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*devices)[i]->info().name, absl::StrCat("cpu:", i));
    EXPECT_EQ((*devices)[i]->info().target.compute_units, std::max(1, AvailableCores() / 3));
    memory += (*devices)[i]->info().memory_bytes;
  }
  EXPECT_LE(memory, AvailableMemory());
}

TEST(DriverTest, OptionsAreChecked) {
  std::string why_none;
  EXPECT_THAT(CpuDriver({.devices = -1}).Enumerate(&why_none).status().message(), HasSubstr("-1"));
  EXPECT_THAT(CpuDriver({.threads_per_device = -2}).Enumerate(&why_none).status().message(),
              HasSubstr("-2"));
  EXPECT_THAT(CpuDriver({.memory_bytes_per_device = -3}).Enumerate(&why_none).status().message(),
              HasSubstr("-3"));
  auto none = CpuDriver({.devices = 0}).Enumerate(&why_none);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
  EXPECT_THAT(why_none, HasSubstr("configuration"));
}

void CountTasks(const void* context, int64_t begin, int64_t end, void* scratch) {
  // The scratch must be writable to its end.
  static_cast<volatile char*>(scratch)[WorkerPool::kScratchBytes - 1] = 1;
  auto* counters = static_cast<std::atomic<int>* const*>(context);
  for (int64_t i = begin; i < end; ++i) (*counters)[i].fetch_add(1, std::memory_order_relaxed);
}

TEST(WorkerPoolTest, EveryTaskRunsOnce) {
  for (int threads : {1, 2, 5}) {
    WorkerPool pool("test", threads);
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
  WorkerPool pool("test", 3);
  std::vector<std::atomic<int>> counters(WorkerPool::kMaxChunks);
  std::atomic<int>* context = counters.data();
  for (int i = 0; i < 20; ++i) pool.Run({CountTasks, &context, WorkerPool::kMaxChunks, 1});
  for (auto& counter : counters) ASSERT_EQ(counter, 20);
}

double ProcessorSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
         1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(WorkerPoolTest, IdleWorkersSleep) {
  WorkerPool pool("test", 4);
  std::vector<std::atomic<int>> counters(100);
  std::atomic<int>* context = counters.data();
  pool.Run({CountTasks, &context, 100, 1});
  usleep(20000);
  const double before = ProcessorSeconds();
  usleep(200000);
  EXPECT_LT(ProcessorSeconds() - before, 0.02);
}

}  // namespace
}  // namespace kiln::drivers::cpu
