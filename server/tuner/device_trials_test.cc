// Trials on a device whose kernels are functions.
#include "server/tuner/device_trials.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_device.h"

namespace kiln::tuner {
namespace {

using kernel::Sample;
using testing::FakeArguments;
using testing::FakeDevice;
using ::testing::HasSubstr;

constexpr int64_t kElements = 100;
constexpr double kLong = 600;
constexpr char kDouble[] = R"(buffer b0 float32[100] read
buffer b1 float32[100] write
stage r0:100
  b1[r0] = b0[r0] + b0[r0]
)";

void Double(const FakeArguments& arguments, int64_t elements = kElements) {
  const auto* from = reinterpret_cast<const float*>(arguments.data[0]);
  auto* to = reinterpret_cast<float*>(arguments.data[1]);
  for (int64_t i = 0; i < elements; ++i) to[i] = from[i] + from[i];
}

drivers::KernelImage ImageOf(const std::string& code, int arguments) {
  drivers::KernelImage image;
  image.name = "trial";
  image.code = code;
  image.num_arguments = arguments;
  image.flops = 3;
  return image;
}

class DeviceTrialsTest : public ::testing::Test {
 protected:
  DeviceTrialsTest() : device_("fake:0", 1 << 20) { UseKernel(kDouble); }

  void UseKernel(const char* text) {
    kernel_ = *kernel::ParseKernel(text, context_);
    auto trials = DeviceTrials::Make(device_, kernel_, /*seed=*/1);
    ASSERT_TRUE(trials.ok()) << trials.status();
    trials_ = *std::move(trials);
  }

  std::unique_ptr<Trial> Load(testing::FakeKernel run) {
    device_.SetKernel("trial", std::move(run));
    auto trial = trials_->Load(ImageOf("trial", 2));
    EXPECT_TRUE(trial.ok()) << trial.status();
    return *std::move(trial);
  }
  // Loads a kernel that doubles its input and then writes a float at this place of an argument.
  std::unique_ptr<Trial> LoadStraying(int argument, int64_t element) {
    return Load([argument, element](const FakeArguments& arguments) {
      Double(arguments);
      reinterpret_cast<float*>(arguments.data[static_cast<size_t>(argument)])[element] = 1;
      return absl::OkStatus();
    });
  }

  ir::Context context_;
  FakeDevice device_;
  kernel::Kernel kernel_;
  std::unique_ptr<DeviceTrials> trials_;
};

std::vector<float> Floats(const std::vector<char>& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

TEST_F(DeviceTrialsTest, RunsOnEveryKindOfInputs) {
  std::vector<float> inputs;
  const auto trial = Load([&](const FakeArguments& arguments) {
    const auto* from = reinterpret_cast<const float*>(arguments.data[0]);
    inputs.assign(from, from + kElements);
    Double(arguments);
    return absl::OkStatus();
  });
  std::vector<std::vector<float>> all;
  for (const Sample sample : kernel::Samples()) {
    const auto outputs = trial->Run({sample}, kLong);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), 1u);
    const std::vector<float> got = Floats(outputs->at(1));
    ASSERT_EQ(got.size(), static_cast<size_t>(kElements));
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(inputs[i])) continue;
      EXPECT_EQ(got[i], 2 * inputs[i]);
    }
    all.push_back(inputs);
  }
  EXPECT_NE(all[0], all[1]);
  EXPECT_EQ(all[4], std::vector<float>(kElements, 2));
}

TEST_F(DeviceTrialsTest, TimesTheDevicesSeconds) {
  int runs = 0;
  device_.TakeTime();
  const auto trial = Load([&runs](const FakeArguments&) {
    ++runs;
    return absl::OkStatus();
  });
  const auto seconds = trial->Time(7, kLong);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  // The fake device reports a microsecond for each operation of the image.
  EXPECT_DOUBLE_EQ(*seconds, 3e-6);
  EXPECT_EQ(runs, 7);
}

TEST_F(DeviceTrialsTest, PerturbsInputs) {
  const auto trial = Load([](const FakeArguments& arguments) {
    Double(arguments);
    return absl::OkStatus();
  });
  const auto first = trial->Run({Sample::kEqual, /*perturbation=*/0.1, /*seed=*/1}, kLong);
  const auto second = trial->Run({Sample::kEqual, 0.1, 2}, kLong);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->at(1), second->at(1));
  for (const float value : Floats(first->at(1))) EXPECT_NEAR(value, 4, 0.41);
  EXPECT_EQ(first->at(1), trial->Run({Sample::kEqual, 0.1, 1}, kLong)->at(1));
}

TEST_F(DeviceTrialsTest, TimesOnRandomInputsAfterOtherOnes) {
  float first = 0;
  const auto trial = Load([&first](const FakeArguments& arguments) {
    std::memcpy(&first, arguments.data[0], sizeof(first));
    return absl::OkStatus();
  });
  ASSERT_TRUE(trial->Run({Sample::kRandom}, kLong).ok());
  const float random = first;
  ASSERT_TRUE(trial->Run({Sample::kEqual}, kLong).ok());
  ASSERT_TRUE(trial->Time(1, kLong).ok());
  EXPECT_EQ(first, random);
}

TEST_F(DeviceTrialsTest, AnElementThatIsNotWrittenIsNan) {
  const auto right = Load([](const FakeArguments& arguments) {
    Double(arguments);
    return absl::OkStatus();
  });
  ASSERT_TRUE(right->Run({Sample::kRandom}, kLong).ok());
  const auto lazy = Load([](const FakeArguments& arguments) {
    Double(arguments, kElements - 1);
    return absl::OkStatus();
  });
  const auto outputs = lazy->Run({Sample::kRandom}, kLong);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(std::isnan(Floats(outputs->at(1)).back()));
  EXPECT_FALSE(std::isnan(Floats(outputs->at(1)).front()));
}

TEST_F(DeviceTrialsTest, ReadsBeyondABufferGetNan) {
  float beyond = 0;
  float before = 0;
  const auto trial = Load([&](const FakeArguments& arguments) {
    std::memcpy(&beyond, arguments.data[0] + kElements * sizeof(float), sizeof(beyond));
    std::memcpy(&before, arguments.data[0] - sizeof(float), sizeof(before));
    return absl::OkStatus();
  });
  ASSERT_TRUE(trial->Run({Sample::kRandom}, kLong).ok());
  EXPECT_TRUE(std::isnan(beyond));
  EXPECT_TRUE(std::isnan(before));
}

TEST_F(DeviceTrialsTest, RefusesWritesOutsideTheOutputs) {
  EXPECT_TRUE(LoadStraying(1, kElements - 1)->Run({Sample::kRandom}, kLong).ok());
  const absl::Status past = LoadStraying(1, kElements + 2)->Run({Sample::kRandom}, kLong).status();
  EXPECT_EQ(past.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(past.message(), HasSubstr("it writes outside its outputs: 8 bytes after buffer b1"));
  EXPECT_TRUE(absl::IsDataLoss(LoadStraying(1, -1)->Run({Sample::kRandom}, kLong).status()));
  // Into an input.
  EXPECT_TRUE(absl::IsDataLoss(LoadStraying(0, 3)->Run({Sample::kPositive}, kLong).status()));
  // The next trial has clean buffers.
  EXPECT_TRUE(LoadStraying(1, 0)->Run({Sample::kRandom}, kLong).ok());
}

TEST_F(DeviceTrialsTest, AnUpdatedBufferHasItsValueBeforeEachRun) {
  UseKernel(
      "buffer b0 int32[100] read\nbuffer b1 float32[8] update\n"
      "stage r0:8 order r1:12\n  b1[r0] = b1[r0] + 1:float32\n");
  const auto trial = Load([](const FakeArguments& arguments) {
    reinterpret_cast<float*>(arguments.data[1])[0] += 1;
    return absl::OkStatus();
  });
  const auto once = trial->Run({Sample::kEqual}, kLong);
  const auto again = trial->Run({Sample::kEqual}, kLong);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(Floats(once->at(1)), Floats(again->at(1)));
  EXPECT_EQ(Floats(once->at(1))[0], 3);
  EXPECT_EQ(Floats(once->at(1))[1], 2);
}

TEST_F(DeviceTrialsTest, StopsACandidateThatDoesNotEnd) {
  const auto trial = Load([](const FakeArguments& arguments) {
    Double(arguments);
    return absl::OkStatus();
  });
  device_.StopLists();
  device_.Hold();
  EXPECT_EQ(trial->Time(1, 0).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(trial->Run({Sample::kOdd}, 0).status().code(), absl::StatusCode::kDeadlineExceeded);
  device_.LetGo();
  EXPECT_TRUE(trial->Run({Sample::kOdd}, kLong).ok());
}

TEST_F(DeviceTrialsTest, RefusesOtherKernels) {
  EXPECT_EQ(trials_->Load(ImageOf("add", 3)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(trials_->Load(ImageOf("unknown", 2)).status().message(),
              HasSubstr("no fake kernel unknown"));
}

TEST_F(DeviceTrialsTest, ReturnsTheDevicesErrors) {
  const auto trial = Load([](const FakeArguments&) { return absl::InternalError("it trapped"); });
  EXPECT_EQ(trial->Time(1, kLong).status(), absl::InternalError("it trapped"));
  EXPECT_EQ(trial->Run({Sample::kOdd}, kLong).status(), absl::InternalError("it trapped"));
  const auto large = *kernel::ParseKernel(
      "buffer b0 float32[1000000] write\nstage r0:1000000\n  b0[r0] = 1:float32\n", context_);
  EXPECT_EQ(DeviceTrials::Make(device_, large, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(DeviceTrialsTest, ArgumentsWhoseBytesOverflowTakeMoreThanAnyDeviceHas) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    absl::StrAppend(&text, "buffer b", i, " float64[", int64_t{1} << 56, "] read\n");
  const auto large = kernel::ParseKernel(
      text + "buffer b20 float64[1] write\nstage r0:1\n  b20[r0] = 1:float64\n", context_);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_GE(DeviceTrials::BytesOf(*large, device_.info().target), int64_t{1} << 60);
}

}  // namespace
}  // namespace kiln::tuner
