// Programs of one graph with different kernels, on this machine's processor.
#include "server/tuner/program_trials.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/text.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/program_difference.h"

namespace kiln::tuner {
namespace {

using compiler::CompiledProgram;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The sum of each row of exp2(a) + b, and another kernel that no choice concerns.
constexpr char kGraph[] = R"(input 0 float32[256,512]
input 1 float32[256,512]
input 2 float32[8]
%0 = input float32[256,512] index=0
%1 = exp2 float32[256,512] %0
%2 = input float32[256,512] index=1
%3 = add float32[256,512] %1 %2
%4 = reduce_sum float32[256,1] %3 axes=[1]
%5 = input float32[8] index=2
%6 = reduce_sum float32[1] %5 axes=[0]
output %3
output %4
output %6
)";

class ProgramTrialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_none;
    auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
    device_ = std::move(devices->front());
  }

  CompiledProgram Compile(const std::string& choices) {
    compiler::Options options;
    options.choices = [&choices](const std::string&, const drivers::Target&) {
      return std::optional<std::string>(choices);
    };
    auto program = compiler::Compile(*graph::Parse(kGraph), device_->info().target, options);
    EXPECT_TRUE(program.ok()) << program.status();
    for (const compiler::GraphChoices& part : program->choices) EXPECT_EQ(part.refusal, "");
    return *std::move(program);
  }

  absl::StatusOr<Comparison> Compare(const CompiledProgram& before, const CompiledProgram& after) {
    return CompareOnDevice(
        before, after,
        [this](const kernel::Kernel& buffers, absl::FunctionRef<absl::Status(TrialRunner&)> use) {
          // As a process of trials gets it.
          ir::Context context;
          const auto read = kernel::ParseKernel(kernel::Print(buffers), context);
          if (!read.ok()) return read.status();
          const auto runner = DeviceTrials::Make(*device_, *read, /*seed=*/1);
          return runner.ok() ? use(**runner) : runner.status();
        },
        {.rounds = 2, .confirming_rounds = 2, .run_seconds_max = 600, .patience_seconds = 600});
  }

  std::unique_ptr<drivers::Device> device_;
};

TEST_F(ProgramTrialsTest, OnlyKernelsThatDifferAreCompared) {
  const CompiledProgram before = Compile(""), after = Compile("choices 1\napart %4\n");
  ir::Context context;
  const auto same = DifferenceOf(before, before, context);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->empty());
  const auto difference = DifferenceOf(before, after, context);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_THAT(difference->before, SizeIs(1));
  EXPECT_THAT(difference->after, SizeIs(2));
  // Two inputs, and two outputs that both ways write.
  EXPECT_THAT(difference->compared.buffers, SizeIs(4));
  EXPECT_GT(difference->tolerance, 0);
  const auto comparison = Compare(before, after);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_GT(comparison->seconds_before, 0);
  EXPECT_GT(comparison->seconds_after, 0);
  const auto none = Compare(before, before);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->seconds_before, 0);
}

// Faster than every other candidate.
TEST_F(ProgramTrialsTest, AProgramThatComputesSomethingElseIsNotChosen) {
  const CompiledProgram before = Compile("choices 1\napart %4\n");
  CompiledProgram after = Compile("");
  for (compiler::CompiledKernel& kernel : after.kernels) {
    drivers::KernelImage planted;
    planted.name = kernel.image.name;
    planted.architecture = kernel.image.architecture;
    planted.code = "\xc3";  // ret
    planted.num_arguments = kernel.image.num_arguments;
    kernel.image = planted;
  }
  // On a busy machine it may not look faster, and then nothing is compared.
  auto comparison = Compare(before, after);
  for (int attempt = 0; attempt < 50 && comparison.ok(); ++attempt) {
    ASSERT_FALSE(comparison->is_gain);
    comparison = Compare(before, after);
  }
  EXPECT_TRUE(absl::IsDataLoss(comparison.status())) << comparison.status();
  EXPECT_THAT(comparison.status().message(), HasSubstr("buffer b"));
}

// A value between two kernels belongs to one way, and is not compared.
TEST_F(ProgramTrialsTest, ValuesOfOneWayAreNotCompared) {
  const CompiledProgram before = Compile(""), after = Compile("choices 1\nstore %1\napart %3\n");
  ir::Context context;
  const auto difference = DifferenceOf(before, after, context);
  ASSERT_TRUE(difference.ok()) << difference.status();
  int outputs = 0, compared = 0;
  for (size_t i = 0; i < difference->kernel.buffers.size(); ++i) {
    outputs += difference->kernel.buffers[i].access == kernel::Access::kWrite ? 1 : 0;
    compared += difference->compared.buffers[i].access == kernel::Access::kWrite ? 1 : 0;
  }
  EXPECT_EQ(outputs, compared + 1);
  const auto comparison = Compare(before, after);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
}

TEST_F(ProgramTrialsTest, AnErrorOfTheRunnerIsTheResult) {
  const auto comparison =
      CompareOnDevice(Compile(""), Compile("choices 1\napart %4\n"),
                      [](const kernel::Kernel&, absl::FunctionRef<absl::Status(TrialRunner&)>) {
                        return absl::UnavailableError("no memory");
                      },
                      {});
  EXPECT_EQ(comparison.status().message(), "no memory");
}

}  // namespace
}  // namespace kiln::tuner
