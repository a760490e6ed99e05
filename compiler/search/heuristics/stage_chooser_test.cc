// The axes of lanes and tasks, for stages that are not contractions.
#include "compiler/search/heuristics/stage_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/heuristics/heuristic.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

drivers::Target WideTarget() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.limits.vector_bytes = 64;
  target.limits.vector_registers = 32;
  target.limits.compute_units = 2;
  return target;
}

struct ChosenStages {
  ir::Context context;
  kernel::Kernel kernel;
  schedule::Schedule schedule;
  schedule::Plan plan;

  // Returns the kernel's axis that the lanes are a part of, or -1 if there are no lanes in this
  // stage (-1: the grid).
  int LanesOf(int stage) const {
    const std::vector<int>& order =
        stage < 0 ? plan.grid_order : plan.stages[static_cast<size_t>(stage)].order;
    for (int axis : order) {
      if (plan.axes[axis].binding != Binding::kVector) continue;
      while (plan.axes[axis].parent >= 0) axis = plan.axes[axis].parent;
      return axis;
    }
    return -1;
  }
  int64_t Lanes() const {
    for (const schedule::Axis& axis : plan.axes) {
      if (axis.leaf() && axis.binding == Binding::kVector) return axis.extent;
    }
    return 1;
  }
  int64_t Tasks() const {
    int64_t tasks = 1;
    for (const schedule::Axis& axis : plan.axes) {
      if (axis.leaf() && axis.binding == Binding::kTask) tasks *= axis.extent;
    }
    return tasks;
  }
  bool Streams() const {
    return std::any_of(plan.stages.begin(), plan.stages.end(),
                       [](const schedule::StagePlan& stage) { return stage.stream; });
  }
};

void Choose(std::string_view text, ChosenStages* chosen) {
  auto kernel = kernel::ParseKernel(text, chosen->context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  chosen->kernel = *kernel;
  chosen->schedule = search::Choose(chosen->kernel, WideTarget());
  auto plan = schedule::MakePlan(chosen->kernel, chosen->schedule);
  ASSERT_TRUE(plan.ok()) << plan.status();
  chosen->plan = *plan;
}

TEST(StageChooserTest, ASmallKernelIsOneTask) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[100] read\nbuffer b1 float32[100] write\n"
      "stage r0:100\n  b1[r0] = exp2(b0[r0])\n",
      &chosen);
  EXPECT_EQ(chosen.Tasks(), 1);
  EXPECT_EQ(chosen.LanesOf(0), 0);
  EXPECT_FALSE(chosen.Streams());
}

TEST(StageChooserTest, LargeOutputsStream) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[16777216] read\nbuffer b1 float32[16777216] write\n"
      "stage r0:16777216\n  b1[r0] = exp2(b0[r0])\n",
      &chosen);
  EXPECT_TRUE(chosen.Streams());
  EXPECT_GE(chosen.Tasks(), 8);
  EXPECT_LE(chosen.Tasks(), 64);
}

TEST(StageChooserTest, TheLastReaderOfARowFetchesTheNext) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[16777216] read\nbuffer b1 float32[16777216] write\n"
      "buffer b2 float32[1] local\ngrid r0:16384\n"
      "stage reduce r1:1024\n  b2[0] = sum(b0[r0*1024 + r1])\n"
      "stage r2:1024\n  b1[r0*1024 + r2] = b0[r0*1024 + r2] - b2[0]\n",
      &chosen);
  EXPECT_TRUE(chosen.plan.stages[0].prefetches.empty());
  ASSERT_EQ(chosen.plan.stages[1].prefetches.size(), 1);
  const schedule::PrefetchPlan& ahead = chosen.plan.stages[1].prefetches[0];
  EXPECT_EQ(ahead.buffer, 0);
  EXPECT_EQ(ahead.range, chosen.kernel.grid[0]);
  auto program = schedule::Apply(chosen.kernel, chosen.schedule);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(schedule::Print(*program), testing::HasSubstr("prefetch in0["));
}

TEST(StageChooserTest, RowsInTheCacheAreNotFetchedAhead) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[65536] read\nbuffer b1 float32[65536] write\n"
      "buffer b2 float32[1] local\ngrid r0:64\n"
      "stage reduce r1:1024\n  b2[0] = sum(b0[r0*1024 + r1])\n"
      "stage r2:1024\n  b1[r0*1024 + r2] = b0[r0*1024 + r2] - b2[0]\n",
      &chosen);
  EXPECT_TRUE(chosen.plan.stages[1].prefetches.empty());
}

TEST(StageChooserTest, RowsAreSummedInLanesOfColumns) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[4194304] read\nbuffer b1 float32[1024] write\n"
      "stage r0:1024 reduce r1:4096\n  b1[r0] = sum(b0[r1*1024 + r0])\n",
      &chosen);
  EXPECT_EQ(chosen.LanesOf(0), 0);
  EXPECT_GE(chosen.Tasks(), 2);
}

TEST(StageChooserTest, AChannelIsSummedAlongItsMemory) {
  // The few results, contiguous along the channels, count for less than the many elements.
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[2359296] read\nbuffer b1 float32[32] write\n"
      "stage r0:32 reduce r1:128 r2:576\n  b1[r0] = sum(b0[r1*18432 + r0*576 + r2])\n",
      &chosen);
  EXPECT_EQ(chosen.LanesOf(0), 2);
}

TEST(StageChooserTest, WindowsAreUnrolled) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[1638400] read\nbuffer b1 float32[409600] write\n"
      "stage r0:4096 r1:10 r2:10 reduce r3:2 r4:2\n"
      "  b1[r0*100 + r1*10 + r2] = max(b0[r0*400 + r1*40 + r3*20 + r2*2 + r4])\n",
      &chosen);
  EXPECT_EQ(chosen.LanesOf(0), 2);
  for (int axis : {3, 4}) EXPECT_EQ(chosen.plan.axes[axis].binding, Binding::kUnroll) << axis;
}

constexpr std::string_view kShortRows =
    "buffer b0 float32[81920] read\nbuffer b1 float32[81920] write\n"
    "buffer b2 float32[1] local\nbuffer b3 float32[10] local\nbuffer b4 float32[1] local\n"
    "grid r0:8192\n"
    "stage reduce r1:10\n  b2[0] = max(b0[r0*10 + r1])\n"
    "stage r2:10\n  b3[r2] = exp2(b0[r0*10 + r2] - b2[0])\n"
    "stage reduce r3:10\n  b4[0] = reciprocal(sum(b3[r3]))\n"
    "stage r4:10\n  b1[r0*10 + r4] = b3[r4]*b4[0]\n";
constexpr std::string_view kLongRows =
    "buffer b0 float32[1048576] read\nbuffer b1 float32[1048576] write\n"
    "buffer b2 float32[1] local\n"
    "grid r0:1024\n"
    "stage reduce r1:1024\n  b2[0] = sum(b0[r0*1024 + r1])\n"
    "stage r2:1024\n  b1[r0*1024 + r2] = b0[r0*1024 + r2]/b2[0]\n";

TEST(StageChooserTest, LanesStandAcrossShortRowsAndAlongLongOnes) {
  ChosenStages across;
  Choose(kShortRows, &across);
  EXPECT_EQ(across.LanesOf(-1), 0);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(across.LanesOf(stage), -1) << stage;
  ChosenStages along;
  Choose(kLongRows, &along);
  EXPECT_EQ(along.LanesOf(-1), -1);
  EXPECT_EQ(along.LanesOf(0), 1);
  EXPECT_EQ(along.LanesOf(1), 2);
}

// A position of eight bytes is the same in all lanes of a row.
TEST(StageChooserTest, PositionsOfRowsDoNotWidenTheirElements) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[1000000] read\nbuffer b1 int64[512] read\n"
      "buffer b2 float32[512000] write\nstage r0:512 r1:1000\n  v0 = b1[r0]\n"
      "  b2[r0*1000 + r1] = b0[v0*1000 + r1 if and(cmplt(-1, v0), cmplt(v0, 1000))]\n",
      &chosen);
  EXPECT_EQ(chosen.LanesOf(0), 1);
  EXPECT_EQ(chosen.Lanes(), 16);
}

TEST(StageChooserTest, PositionsOfElementsWidenThem) {
  ChosenStages chosen;
  Choose(
      "buffer b0 float32[1000] read\nbuffer b1 int64[512000] read\n"
      "buffer b2 float32[512000] write\nstage r0:512000\n  v0 = b1[r0]\n"
      "  b2[r0] = b0[v0 if and(cmplt(-1, v0), cmplt(v0, 1000))]\n",
      &chosen);
  EXPECT_EQ(chosen.Lanes(), 8);
}

TEST(StageChooserTest, NoLanesWhereEveryStepStoresTheSame) {
  ChosenStages chosen;
  Choose("buffer b0 float32[1] write\nstage reduce r0:3\n  b0[0] = 1:float32\n", &chosen);
  EXPECT_EQ(chosen.LanesOf(0), -1);
}

TEST(TaskSplitTest, TasksGrowWithTheWorkUpToABound) {
  const drivers::Target target = WideTarget();
  EXPECT_EQ(TasksFor(100, target), 1);
  EXPECT_GT(TasksFor(1e5, target), 2);
  EXPECT_EQ(TasksFor(1e7, target), TasksFor(2e7, target)) << "enough for all threads";
  EXPECT_EQ(TasksFor(1e10, target), 2500) << "a long task delays others";
  EXPECT_EQ(TasksFor(1e15, target), TasksFor(1e30, target));
  drivers::Target slow_to_start = target;
  slow_to_start.costs.instructions.task_min = 1e5;
  EXPECT_EQ(TasksFor(1e5, slow_to_start), 1);
}

}  // namespace
}  // namespace kiln::search
