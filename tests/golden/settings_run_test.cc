// Random settings compute the same: of workloads on a described H100, whose spaces are also proved
// at full sizes, as interpreted PTX; and of random kernels on this machine's processor and OpenCL
// device. Longer: KILN_SPACE_SETTINGS, KILN_SETTING_RUNS and KILN_SETTING_KERNELS; other kernels:
// KILN_SETTING_SEED.
#include <deque>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/widen.h"
#include "compiler/search/testing/random_setting.h"
#include "drivers/cpu/driver.h"
#include "drivers/opencl/driver.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/kernel_trials.h"
#include "tests/environment.h"
#include "tests/golden/device_kernels.h"
#include "tests/golden/model_builder.h"
#include "tests/golden/setting_checks.h"
#include "tests/launches/h100.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/opencl_platform.h"

namespace kiln::golden {
namespace {

using numerics::MachineCode;
using search::Setting;
using search::Space;

graph::Graph Matmul(int64_t size) {
  ModelBuilder m;
  const ir::DType dtype = ir::DType::kBFloat16;
  m.Output(m.Op("matmul", {m.Input({size, size}, dtype), m.Input({size, size}, dtype)}));
  return m.Finish();
}
graph::Graph Attention(int64_t size) {
  ModelBuilder m;
  const auto input = [&] { return m.Input({2, size, 16}, ir::DType::kBFloat16); };
  const ir::Node *query = input(), *key = input(), *value = input();
  m.Output(m.Op("scaled_dot_product_attention", {query, key, value}, {{"causal", true}}));
  return m.Finish();
}
graph::Graph LayerNorm(int64_t size) {
  ModelBuilder m;
  m.Output(m.Op("layer_norm", {m.Input({size, size}), m.Input({size}), m.Input({size})}));
  return m.Finish();
}

struct Workload {
  std::string name;
  graph::Graph (*graph)(int64_t size);
  int64_t full = 0;
  int64_t small = 0;
};

const Workload kWorkloads[] = {{"matmul", Matmul, 4096, 40},
                               {"attention", Attention, 1024, 24},
                               {"layer_norm", LayerNorm, 4096, 72}};

std::vector<kernel::Kernel> KernelsOfWorkload(const Workload& workload, int64_t size,
                                              ir::Context& context) {
  const auto kernels =
      KernelsOf(graph::Simplify(graph::Widen(workload.graph(size))), launches::H100(), context);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return kernels.value_or(std::vector<kernel::Kernel>());
}

// Compiles the schedule of a setting, and compares its results with the interpreter's.
std::string FaultOfRun(const MachineCode& code, const kernel::Kernel& kernel,
                       const drivers::Target& target, const Space& space, const Setting& setting,
                       const std::vector<ops::HostTensor>& interpreted, double tolerance) {
  const auto schedule = space.Write(setting);
  if (!schedule.ok()) return schedule.status().ToString();
  const auto image = code.compile(kernel, *schedule, target);
  std::string fault = image.ok()
                          ? Disagreement(code, kernel, *image, target, interpreted, tolerance)
                          : image.status().ToString();
  if (fault.empty()) return "";
  return absl::StrCat(fault, "\n", kernel::Print(kernel), search::Print(setting),
                      schedule::Print(*schedule));
}

class H100Test : public testing::TestWithParam<Workload> {};

// In the order of their distance from the heuristic's.
TEST_P(H100Test, AllSettingsNearTheHeuristicsAreRefusedOrProved) {
  const auto settings_max = NumberFromEnvironment("KILN_SPACE_SETTINGS", 200);
  ir::Context context;
  for (const kernel::Kernel& kernel : KernelsOfWorkload(GetParam(), GetParam().full, context)) {
    const Space space(kernel, launches::H100(), search::Machine::kThreads);
    std::deque<Setting> open = {space.heuristic()};
    std::set<std::string> seen = {search::Print(space.heuristic())};
    int legal = 0;
    while (!open.empty() && static_cast<int64_t>(seen.size()) < settings_max) {
      for (const Setting& next : space.Neighbours(open.front())) {
        if (!seen.insert(search::Print(next)).second) continue;
        ASSERT_EQ(FaultOf(kernel, space, next, &legal), "");
        if (space.Write(next).ok()) open.push_back(next);
      }
      open.pop_front();
    }
    EXPECT_GT(legal, 5) << kernel::Print(kernel);
    std::cout << kernel.name << ": " << seen.size() << " settings, " << legal << " legal"
              << (open.empty() ? ", all of the space" : "") << std::endl;
  }
}

TEST_P(H100Test, RandomSettingsComputeTheSame) {
  const auto runs = NumberFromEnvironment("KILN_SETTING_RUNS", 8);
  ir::Context context;
  std::mt19937_64 random(1);
  std::set<std::string> seen;
  for (const kernel::Kernel& kernel : KernelsOfWorkload(GetParam(), GetParam().small, context)) {
    const Space space(kernel, launches::H100(), search::Machine::kThreads);
    const auto interpreted = numerics::Interpreted(kernel);
    ASSERT_TRUE(interpreted.ok()) << interpreted.status();
    for (int64_t run = 0; run < runs; ++run) {
      const Setting setting = search::RandomSetting(space, random);
      if (!seen.insert(absl::StrCat(kernel.name, search::Print(setting))).second) continue;
      ASSERT_EQ(FaultOfRun(numerics::Ptx(), kernel, launches::H100(), space, setting, *interpreted,
                           /*tolerance=*/2e-2),
                "");
    }
  }
  std::cout << seen.size() << " settings" << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Workloads, H100Test, testing::ValuesIn(kWorkloads),
                         [](const auto& info) { return info.param.name; });

// Compares the setting's results with the plain schedule's, on all kinds of inputs, as a search
// does before it chooses a setting. Returns an empty text if they are equal, or if the device
// cannot compute the plain schedule.
std::string FaultOnDevice(drivers::Device& device, const kernel::Kernel& kernel,
                          std::mt19937_64& random, int64_t* run) {
  const drivers::Target& target = device.info().target;
  const auto runner = tuner::DeviceTrials::Make(device, kernel, /*seed=*/1);
  if (!runner.ok()) return runner.status().ToString();
  const search::Space space(kernel, target, search::MachineOf(target));
  const Setting setting = search::RandomSetting(space, random);
  tuner::KernelTrials trials(kernel, target, compiler::CompileJob, **runner,
                             {.rounds = 1,
                              .confirming_rounds = 1,
                              .turn_seconds = 0,
                              .run_seconds_max = 600,
                              .patience_seconds = 600,
                              .plain_points_max = 0});
  const search::Candidate plain{{}, {}}, candidate{setting, *space.Write(setting)};
  const auto timing = trials.Measure(nullptr, {&plain, 1}).at(0);
  if (!timing.ok()) return "";
  ++*run;
  const auto confirmed = trials.Confirm({plain, *timing}, candidate);
  if (confirmed.ok()) return "";
  return absl::StrCat(confirmed.status().ToString(), "\n", kernel::Print(kernel),
                      search::Print(setting), schedule::Print(candidate.schedule));
}

void ExpectRandomSettingsRight(drivers::Device& device) {
  const auto kernels_max = NumberFromEnvironment("KILN_SETTING_KERNELS", 6);
  const DescribedDevice described{"device", true, device.info().target};
  std::mt19937_64 random(3);
  int64_t run = 0, next_line = 20;
  for (auto seed = static_cast<uint64_t>(NumberFromEnvironment("KILN_SETTING_SEED", 0));
       run < kernels_max; ++seed) {
    ir::Context context;
    const auto kernels = RandomKernels(seed, described, context);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    for (const kernel::Kernel& kernel : *kernels)
      ASSERT_EQ(FaultOnDevice(device, kernel, random, &run), "") << "seed " << seed;
    if (run < next_line) continue;
    std::cout << run << " kernels, seed " << seed << std::endl;
    next_line = run + 20;
  }
  std::cout << run << " kernels" << std::endl;
}

TEST(RandomKernelsTest, SettingsComputeThePlainScheduleOnTheProcessor) {
  std::string why_none;
  const auto devices = drivers::cpu::CpuDriver({.threads_per_device = 2}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
  ExpectRandomSettingsRight(*devices->front());
}

TEST(RandomKernelsTest, SettingsComputeThePlainScheduleInOpenCl) {
  std::string why_none;
  const auto devices = drivers::opencl::OpenClDriver(
                           {.sharing_host_memory = true, .platform = OpenClPlatformToTest()})
                           .Enumerate(&why_none);
  if (!devices.ok() || devices->empty()) GTEST_SKIP() << why_none;
  ExpectRandomSettingsRight(*devices->front());
}

}  // namespace
}  // namespace kiln::golden
