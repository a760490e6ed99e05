// The space of settings, on all kernels of known graphs and on random kernels, for each kind of
// device: every setting is refused with a reason, or gives a schedule that the proof accepts.
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/search/heuristics/heuristic.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "compiler/search/space.h"
#include "compiler/search/testing/random_setting.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/golden/device_kernels.h"
#include "tests/golden/devices.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/setting_checks.h"

namespace kiln::golden {
namespace {

using search::Setting;
using search::Space;

search::Machine MachineOf(const DescribedDevice& device) {
  return device.lanes_are_threads ? search::Machine::kThreads : search::Machine::kLanes;
}

schedule::Schedule Heuristic(const kernel::Kernel& kernel, const DescribedDevice& device) {
  return device.lanes_are_threads ? search::ChooseThreads(kernel, device.target)
                                  : search::Choose(kernel, device.target);
}

void ExpectReadsBack(const Setting& setting) {
  const auto parsed = search::ParseSetting(search::Print(setting));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->setting, setting);
  EXPECT_TRUE(parsed->ignored.empty());
}

// Walks through legal settings, and tries a setting far away after each step.
void TrySettings(const kernel::Kernel& kernel, const DescribedDevice& device, int steps,
                 std::mt19937_64& random, int* legal) {
  const Space space(kernel, device.target, MachineOf(device));
  Setting here = space.heuristic();
  EXPECT_TRUE(space.Write(here).ok()) << space.Write(here).status() << search::Print(here);
  for (int i = 0; i < steps; ++i) {
    const std::vector<Setting> neighbours = space.Neighbours(here);
    if (neighbours.empty()) return;
    const Setting& next = neighbours[random() % neighbours.size()];
    ASSERT_EQ(FaultOf(kernel, space, next, legal), "") << device.name;
    if (space.Write(next).ok()) here = next;
    ASSERT_EQ(FaultOf(kernel, space, search::Scattered(space, here, random), legal), "")
        << device.name;
  }
  ExpectReadsBack(here);
  std::vector<std::string> ignored;
  EXPECT_EQ(space.Complete(here, &ignored), here);
  EXPECT_TRUE(ignored.empty());
}

class DeviceTest : public testing::TestWithParam<DescribedDevice> {};

TEST_P(DeviceTest, SchedulesAreAsInTheFile) {
  ir::Context context;
  const auto kernels = KnownKernels(GetParam(), context);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  std::string text;
  for (const kernel::Kernel& kernel : *kernels) {
    absl::StrAppend(&text, "# ", kernel.name, "\n", schedule::Print(Heuristic(kernel, GetParam())),
                    "\n");
  }
  EXPECT_EQ(DifferenceFromFile(absl::StrCat("schedules/", GetParam().name, ".txt"), text), "");
}

TEST_P(DeviceTest, HeuristicsArePointsOfTheSpace) {
  ir::Context context;
  const auto kernels = KnownKernels(GetParam(), context);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  for (const kernel::Kernel& kernel : *kernels) {
    const Space space(kernel, GetParam().target, MachineOf(GetParam()));
    const auto schedule = space.Write(space.heuristic());
    ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << search::Print(space.heuristic());
    EXPECT_EQ(schedule::Print(*schedule), schedule::Print(Heuristic(kernel, GetParam())));
    ExpectReadsBack(space.heuristic());
    for (const auto& [part, knob] : space.Knobs(space.heuristic())) {
      EXPECT_LE(knob.values.size(), search::kKnobValuesMax);
    }
  }
}

TEST_P(DeviceTest, SettingsOfKnownKernelsAreRefusedOrRight) {
  ir::Context context;
  const auto kernels = KnownKernels(GetParam(), context);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const auto steps = static_cast<int>(NumberFromEnvironment("KILN_SETTINGS", 6));
  std::mt19937_64 random(1);
  int legal = 0;
  for (const kernel::Kernel& kernel : *kernels) {
    TrySettings(kernel, GetParam(), steps, random, &legal);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(legal, 2 * static_cast<int>(kernels->size()));
}

TEST_P(DeviceTest, SettingsOfRandomKernelsAreRefusedOrRight) {
  const auto graphs = static_cast<uint64_t>(NumberFromEnvironment("KILN_RANDOM_GRAPHS", 8));
  std::mt19937_64 random(2);
  int legal = 0;
  for (uint64_t seed = 0; seed < graphs; ++seed) {
    ir::Context context;
    const auto kernels = RandomKernels(seed, GetParam(), context);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    for (const kernel::Kernel& kernel : *kernels) {
      TrySettings(kernel, GetParam(), 3, random, &legal);
      if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
  EXPECT_GT(legal, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(DescribedDevices()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::golden
