#include "drivers/cpu/control_groups.h"

#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "drivers/cpu/host.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

class ControlGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/control_groups_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + file).parent_path());
    std::ofstream(root_ + "/" + file) << text;
  }
  ControlGroups Groups() { return ControlGroups(root_, root_ + "/own"); }

  std::string root_;
};

TEST_F(ControlGroupsTest, WithoutFilesThereAreNoLimits) {
  EXPECT_EQ(Groups().MemoryLimit(), INT64_MAX);
  EXPECT_TRUE(std::isinf(Groups().CoreLimit()));
  EXPECT_EQ(AvailableMemory(Groups()), int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE));
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  EXPECT_EQ(AvailableCores(Groups()), CPU_COUNT(&mask));
}

TEST_F(ControlGroupsTest, MaxAndMinusOneAreNoLimits) {
  Write("memory.max", "max\n");
  Write("cpu.max", "max 100000\n");
  Write("cpu/cpu.cfs_quota_us", "-1\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Groups().MemoryLimit(), INT64_MAX);
  EXPECT_TRUE(std::isinf(Groups().CoreLimit()));
}

TEST_F(ControlGroupsTest, DamagedFilesAreNoLimits) {
  Write("own", "0::\nnonsense\n1:cpu\n");
  Write("cpu.max", "many cores\n");
  Write("cpu/cpu.cfs_quota_us", "100000\n");  // the period is missing
  EXPECT_TRUE(std::isinf(Groups().CoreLimit()));
  Write("cpu/cpu.cfs_period_us", "0\n");
  EXPECT_TRUE(std::isinf(Groups().CoreLimit()));
}

TEST_F(ControlGroupsTest, EveryGroupOnTheWayLimits) {
  Write("own", "0::/a/b\n");
  Write("a/memory.max", "70000000\n");
  Write("a/cpu.max", "700000 100000\n");
  EXPECT_EQ(Groups().MemoryLimit(), 70000000);
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 7);
  Write("a/b/memory.max", "50000000\n");
  Write("a/b/cpu.max", "125000 50000\n");
  EXPECT_EQ(AvailableMemory(Groups()), 50000000);
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 2.5);
  Write("memory.max", "30000000\n");
  Write("cpu.max", "150000 100000\n");
  EXPECT_EQ(Groups().MemoryLimit(), 30000000);
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 1.5);
  Write("c/cpu.max", "10000 100000\n");
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 1.5) << "another group's limit";
}

TEST_F(ControlGroupsTest, VersionOneHasAHierarchyForEachController) {
  Write("own", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/2\n3:cpuset:/docker/3\n");
  Write("memory/memory.limit_in_bytes", "12345678\n");
  EXPECT_EQ(Groups().MemoryLimit(), 12345678);
  Write("memory/docker/2/memory.limit_in_bytes", "1234567\n");
  EXPECT_EQ(Groups().MemoryLimit(), 1234567);
  Write("cpu/cpu.cfs_period_us", "100000\n");
  Write("cpu/cpu.cfs_quota_us", "400000\n");
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 4);
  Write("cpu/docker/1/cpu.cfs_period_us", "20000\n");
  Write("cpu/docker/1/cpu.cfs_quota_us", "60000\n");
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 3);
}

TEST_F(ControlGroupsTest, AContainerSeesItsOwnGroupAsTheRoot) {
  Write("own", "0::/system.slice/docker-1.scope\n");  // does not exist inside the container
  Write("cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(Groups().CoreLimit(), 2);
}

TEST_F(ControlGroupsTest, CoresAreRoundedAndAtLeastOne) {
  const int all = AvailableCores(Groups());
  Write("cpu.max", "10000 100000\n");
  EXPECT_EQ(AvailableCores(Groups()), 1);
  Write("cpu.max", "140000 100000\n");
  EXPECT_EQ(AvailableCores(Groups()), 1);
  Write("cpu.max", "150000 100000\n");
  EXPECT_EQ(AvailableCores(Groups()), std::min(all, 2));
  Write("cpu.max", "900000000 100000\n");
  EXPECT_EQ(AvailableCores(Groups()), all);
}

}  // namespace
}  // namespace kiln::drivers::cpu
