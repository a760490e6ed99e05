// kilnd as a process that runs the candidates of a search.
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/process_trials.h"

namespace kiln {
namespace {

constexpr char kTripling[] = R"(buffer b0 int32[16] read
buffer b1 int32[16] write
stage r0:16
  b1[r0] = b0[r0] * 3:int32
)";

// The command that server/daemon_parts.cc makes, with this device instead of "cpu:0".
std::vector<std::string> CommandFor(const std::string& device) {
  return {KILND,
          "--trials",
          device,
          /*devices=*/"",
          /*cpu_devices=*/"1",
          /*cpu_threads=*/"1",
          /*cpu_features=*/"",
          /*memory_limit=*/"0"};
}

class TrialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_none;
    auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
    target_ = devices->front()->info().target;
    kernel_ = *kernel::ParseKernel(kTripling, context_);
  }
  absl::StatusOr<std::unique_ptr<tuner::ProcessTrials>> Make(std::vector<std::string> command) {
    tuner::ProcessTrials::Options options;
    options.command = std::move(command);
    return tuner::ProcessTrials::Make(kernel_, target_, /*seed=*/1, std::move(options));
  }

  drivers::Target target_;
  ir::Context context_;
  kernel::Kernel kernel_;
};

TEST_F(TrialsTest, KilndRunsCandidates) {
  const auto trials = Make(CommandFor("cpu:0"));
  ASSERT_TRUE(trials.ok()) << trials.status();
  const auto image = compiler::CompileJob(
      {.name = "tripling", .kernel = kernel::Print(kernel_), .schedule = "", .target = target_});
  ASSERT_TRUE(image.ok()) << image.status();
  const auto trial = (*trials)->Load(*image);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_TRUE((*trial)->Time(3, /*seconds_max=*/600).ok());
  const auto outputs = (*trial)->Run({kernel::Sample::kRandom}, /*seconds_max=*/600);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(outputs->at(1), ::testing::SizeIs(64));
}

TEST_F(TrialsTest, KilndRefusesDevicesThatItDoesNotHave) {
  EXPECT_TRUE(absl::IsNotFound(Make(CommandFor("cpu:7")).status()));
  EXPECT_TRUE(absl::IsInternal(Make(CommandFor("abacus:0")).status()));
  std::vector<std::string> command = CommandFor("cpu:0");
  command[5] = "many";
  EXPECT_TRUE(absl::IsInvalidArgument(Make(command).status()));
}

}  // namespace
}  // namespace kiln
