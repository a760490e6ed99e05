// A search on this machine's processor, and machine code that no compiler makes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "compiler/search/beam.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/kernel_trials.h"

namespace kiln::tuner {
namespace {

using kernel::Sample;
using search::Candidate;
using search::Measured;
using ::testing::HasSubstr;

constexpr char kSmallMatmul[] = R"(buffer b0 float32[4096] read
buffer b1 float32[4096] read
buffer b2 float32[4096] write
stage r0:64 r1:64 reduce r2:64
  b2[r0*64 + r1] = sum(b0[r0*64 + r2]*b1[r2*64 + r1])
)";

class TuneOnCpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_none;
    auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
    device_ = std::move(devices->front());
    kernel_ = *kernel::ParseKernel(kSmallMatmul, context_);
    auto runner = DeviceTrials::Make(*device_, kernel_, /*seed=*/1);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }

  const drivers::Target& target() const { return device_->info().target; }
  KernelTrials Trials(workers::CompileFunction compile) {
    return KernelTrials(kernel_, target(), std::move(compile), *runner_,
                        {.compile_threads = 2,
                         .rounds = 2,
                         .confirming_rounds = 2,
                         .run_seconds_max = 600,
                         .patience_seconds = 600});
  }

  std::unique_ptr<drivers::Device> device_;
  ir::Context context_;
  kernel::Kernel kernel_;
  std::unique_ptr<DeviceTrials> runner_;
};

TEST_F(TuneOnCpuTest, SearchesTheSettingsOfAMatmul) {
  const search::Space space(kernel_, target(), search::Machine::kLanes);
  KernelTrials trials = Trials(compiler::CompileJob);
  const auto result = search::FindSetting(
      space, trials, {.width = 2, .candidates_max = 24, .seconds_max = 1e6, .now = absl::Now});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->progress.tried, 5);
  EXPECT_GT(result->best.timing.seconds, 0);
  EXPECT_LE(result->best.timing.seconds, result->progress.heuristic_seconds);
  // All of them are right.
  const Measured heuristic{{space.heuristic(), *space.Write(space.heuristic())},
                           result->path[0].timing.value()};
  for (const search::SearchStep& step : result->path) {
    const auto timing = trials.Confirm(heuristic, {step.setting, *space.Write(step.setting)});
    EXPECT_TRUE(timing.ok()) << timing.status() << "\n" << search::Print(step.setting);
  }
}

// x86-64 code that takes the same arguments. arguments is in rdi.
drivers::KernelImage CodeOf(const std::string& bytes) {
  drivers::KernelImage image;
  image.name = "planted";
  image.architecture = "x86-64";
  image.code = bytes;
  image.num_arguments = 3;
  return image;
}

TEST_F(TuneOnCpuTest, CodeThatDoesNothingIsNotConfirmed) {
  const Candidate planted{{}, *schedule::Parse("split 0 7\n")};
  KernelTrials trials = Trials([&](const workers::KernelJob& job) {
    return job.schedule == schedule::Print(planted.schedule) ? CodeOf("\xc3")  // ret
                                                             : compiler::CompileJob(job);
  });
  const search::Space space(kernel_, target(), search::Machine::kLanes);
  const Candidate heuristic{space.heuristic(), *space.Write(space.heuristic())};
  const auto timing = trials.Measure(nullptr, {&heuristic, 1}).at(0);
  ASSERT_TRUE(timing.ok()) << timing.status();
  const auto planted_timing = trials.Confirm({heuristic, *timing}, planted);
  EXPECT_TRUE(absl::IsDataLoss(planted_timing.status())) << planted_timing.status();
  EXPECT_THAT(planted_timing.status().message(), HasSubstr("buffer b2 is "));
}

TEST_F(TuneOnCpuTest, CodeThatWritesPastABufferIsRefused) {
  // mov rax, [rdi + 16]; mov dword [rax + 16384 + 12], 1; ret
  const std::string code("\x48\x8b\x47\x10\xc7\x80\x0c\x40\x00\x00\x01\x00\x00\x00\xc3", 15);
  const auto trial = runner_->Load(CodeOf(code));
  ASSERT_TRUE(trial.ok()) << trial.status();
  const auto outputs = (*trial)->Run({Sample::kRandom}, /*seconds_max=*/600);
  EXPECT_TRUE(absl::IsDataLoss(outputs.status())) << outputs.status();
  EXPECT_THAT(outputs.status().message(), HasSubstr("12 bytes after buffer b2"));
}

}  // namespace
}  // namespace kiln::tuner
