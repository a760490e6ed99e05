// A device is lost in the middle of a run on several: its runs fail, with an error that names it,
// and other work is not affected.
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/cpu/driver.h"
#include "drivers/cuda/driver.h"
#include "drivers/hsa/driver.h"
#include "drivers/level_zero/driver.h"
#include "drivers/null/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/testing/multi_device_fixture.h"
#include "server/testing/faulty_device.h"
#include "tests/stand_ins/cuda/control.h"
#include "tests/stand_ins/hsa/control.h"
#include "tests/stand_ins/level_zero/control.h"

namespace kiln::runtime {
namespace {

using kiln::testing::FaultyDevice;
using kiln::testing::MeanGraph;
using kiln::testing::MeanGraphOnOne;
using ::testing::HasSubstr;
using Devices = std::vector<std::unique_ptr<drivers::Device>>;

Devices All(drivers::Driver&& driver) {
  std::string why_none;
  auto devices = driver.Enumerate(&why_none);
  EXPECT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) std::cout << driver.name() << " has no device: " << why_none << "\n";
  return *std::move(devices);
}

// Four devices of one kind, the first of which can be lost.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual Devices Open() = 0;
  // After the first kernel of the list that it runs next.
  virtual void LoseInMidStep() = 0;
  virtual void Mend() = 0;
  virtual bool computes() const { return true; }
  // Called when the devices are gone.
  virtual void CheckNothingLeft() {}
};

class NullMachine : public Machine {
 public:
  Devices Open() override {
    Devices devices = All(drivers::null::NullDriver({.fault = [this] { return Fault(); }}));
    Devices others = All(drivers::null::NullDriver({.devices = 4}));
    for (int i = 1; i < 4; ++i) devices.push_back(std::move(others[i]));
    return devices;
  }
  // A list asks when it begins and before each kernel; the test's own requests do not count.
  void LoseInMidStep() override { left_ = 3; }
  void Mend() override { left_ = kNever; }
  bool computes() const override { return false; }

 private:
  static constexpr int kNever = 1 << 30;
  absl::Status Fault() {
    const bool is_list = std::this_thread::get_id() != test_;
    if (left_ <= 0 || (is_list && --left_ == 0)) return absl::InternalError("unplugged");
    return absl::OkStatus();
  }

  const std::thread::id test_ = std::this_thread::get_id();
  std::atomic<int> left_ = kNever;
};

// Processors are never lost, except by a test. The first one is lost when the second one has
// reached the point where it waits for it.
class CpuMachine : public Machine {
 public:
  Devices Open() override {
    Devices devices = All(drivers::cpu::CpuDriver({.devices = 4, .threads_per_device = 1}));
    auto first = std::make_unique<FaultyDevice>(
        std::move(devices[0]), [this](const drivers::Command& command) { return Fault(command); });
    first_ = first.get();
    devices[0] = std::move(first);
    devices[1] = std::make_unique<FaultyDevice>(
        std::move(devices[1]), [this](const drivers::Command& command) {
          if (std::holds_alternative<drivers::WaitCommand>(command)) Waits();
          return absl::OkStatus();
        });
    return devices;
  }
  void LoseInMidStep() override {
    kernels_ = 0;
    is_armed_ = true;
  }
  void Mend() override {
    is_armed_ = false;
    first_->Mend();
  }

 private:
  absl::Status Fault(const drivers::Command& command) {
    if (!is_armed_) return absl::OkStatus();
    if (std::holds_alternative<drivers::LaunchCommand>(command)) ++kernels_;
    if (!std::holds_alternative<drivers::SignalCommand>(command)) return absl::OkStatus();
    EXPECT_GT(kernels_, 0);
    other_waits_.WaitForNotification();
    return absl::InternalError("unplugged");
  }
  void Waits() {
    if (is_armed_ && !other_waits_.HasBeenNotified()) other_waits_.Notify();
  }

  FaultyDevice* first_ = nullptr;
  std::atomic<bool> is_armed_ = false;
  std::atomic<int> kernels_ = 0;
  absl::Notification other_waits_;
};

template <typename Control>
class StandInMachine : public Machine {
 public:
  // `apart`: they do not reach one another's memory.
  StandInMachine(const char* library, const char* control, const char* message, int loss,
                 bool apart, std::function<Devices()> open)
      : loss_(loss), open_(std::move(open)) {
    auto opened = drivers::DynamicLibrary::Open(library);
    EXPECT_TRUE(opened.ok()) << opened.status();
    Control* (*find)() = nullptr;
    EXPECT_TRUE((*opened)->Find(control, &find).ok());
    EXPECT_TRUE((*opened)->Find(message, &message_).ok());
    library_ = *std::move(opened);
    control_ = find();
    control_->devices = 4;
    if constexpr (requires { control_->peers; }) control_->peers = !apart;
    control_->lost_device = 0;
    control_->lost_then = loss_;
  }
  Devices Open() override { return open_(); }
  void LoseInMidStep() override { control_->kernels_until_lost = 1; }
  void Mend() override { control_->lost = 0; }
  void CheckNothingLeft() override {
    EXPECT_EQ(control_->objects, 0);
    EXPECT_EQ(control_->mistakes, 0) << message_();
  }

 private:
  const int loss_;
  const std::function<Devices()> open_;
  std::unique_ptr<drivers::DynamicLibrary> library_;
  Control* control_ = nullptr;
  const char* (*message_)() = nullptr;
};

std::unique_ptr<Machine> Cuda(bool apart) {
  return std::make_unique<StandInMachine<stand_ins::cuda::Control>>(
      KILN_CUDA_STAND_IN, "KilnCudaStandInControl", "KilnCudaStandInMessage",
      /*CUDA_ERROR_ECC_UNCORRECTABLE*/ 214, apart,
      [] { return All(drivers::cuda::CudaDriver({.library = KILN_CUDA_STAND_IN})); });
}
std::unique_ptr<Machine> Hsa(bool apart) {
  return std::make_unique<StandInMachine<stand_ins::hsa::Control>>(
      KILN_HSA_STAND_IN, "KilnHsaStandInControl", "KilnHsaStandInMessage",
      /*HSA_STATUS_ERROR_EXCEPTION*/ 0x1016, apart,
      [] { return All(drivers::hsa::HsaDriver({.library = KILN_HSA_STAND_IN})); });
}
// Always apart. Needs an OpenCL that takes SPIR-V; without one there is no device.
std::unique_ptr<Machine> LevelZero() {
  return std::make_unique<StandInMachine<stand_ins::level_zero::Control>>(
      KILN_LEVEL_ZERO_STAND_IN, "KilnLevelZeroStandInControl", "KilnLevelZeroStandInMessage",
      /*ZE_RESULT_ERROR_DEVICE_LOST*/ 0x70000001, /*apart=*/true, [] {
        return All(drivers::level_zero::LevelZeroDriver({.library = KILN_LEVEL_ZERO_STAND_IN}));
      });
}

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Machine>()> make;
  bool may_be_missing = false;
};

// The kind of devices, and whether runs are cut into pieces; runs on devices that need mirrors
// never are.
class MultiDeviceLoss : public kiln::testing::MultiDeviceTest,
                        public ::testing::WithParamInterface<std::tuple<Kind, bool>> {
 protected:
  void SetUp() override {
    const auto& [kind, in_pieces] = GetParam();
    if (in_pieces) CutAll();
    machine_ = kind.make();
    for (auto& device : machine_->Open()) UseDevice(std::move(device));
    if (devices_.empty() && kind.may_be_missing) GTEST_SKIP();
    ASSERT_EQ(devices_.size(), 4u);
  }
  void TearDown() override {
    // Waits for all before destroying any: a run holds objects of each of its devices until all are
    // idle.
    for (auto& device : devices_) EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration()));
    for (size_t i = 0; i < devices_.size(); ++i) {
      EXPECT_EQ(devices_[i]->dispatcher().queued(), 0);
      EXPECT_EQ(accounts_[i]->bytes(), 0);
      EXPECT_EQ(accounts_[i]->buffers(), 0);
      devices_[i]->arenas().DropIdle();
      EXPECT_EQ(devices_[i]->pool()->used_bytes(), 0);
    }
    devices_.clear();
    machine_->CheckNothingLeft();
  }
  void ExpectRight(const Created& run, float scale) {
    const absl::Status status = Await(run);
    ASSERT_TRUE(status.ok()) << status;
    if (machine_->computes()) ExpectSums(run, scale);
  }

  std::unique_ptr<Machine> machine_;
};

TEST_P(MultiDeviceLoss, InMidStepFailsItsRunsAlone) {
  const auto doomed = Compile(MeanGraph(2, 8), {0, 1});
  const auto alone = Compile(MeanGraphOnOne(), {0});
  // Each trains continuously: a step doubles the values it works on.
  std::vector<std::shared_ptr<const BoundProgram>> healthy;
  for (const std::vector<int>& places : std::vector<std::vector<int>>{{1, 2}, {2, 3}, {3, 1}})
    healthy.push_back(Compile(MeanGraph(2, 8), places));
  for (const int device : {1, 2}) healthy.push_back(Compile(MeanGraphOnOne(), {device}));
  std::vector<std::vector<Created>> steps(healthy.size());
  const auto step = [&](size_t user) {
    const bool is_first = steps[user].empty();
    steps[user].push_back(Start(
        healthy[user], is_first ? Input(*healthy[user], 0) : steps[user].back().results.back(),
        static_cast<int>(user)));
  };
  const ValuePointer input = Input(*doomed, 0);
  ExpectRight(Start(doomed, input, 5), 1);
  for (size_t user = 0; user < healthy.size(); ++user) step(user);

  machine_->LoseInMidStep();
  std::vector<Created> failing;
  for (int i = 0; i < 20; ++i) {
    failing.push_back(
        Start(doomed, i == 0 || failing[0].results.empty() ? input : failing[0].results[2], 5));
    for (size_t user = 0; user < healthy.size(); ++user) step(user);
  }
  for (const Created& run : failing) {
    const absl::Status status = Await(run);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status.message(),
                HasSubstr(absl::StrCat("device ", devices_[0]->name(), " failed: ")));
    for (const ValuePointer& result : run.results) EXPECT_EQ(result->status(), status);
  }
  for (const std::vector<Created>& each : steps)
    for (size_t i = 0; i < each.size(); ++i) ExpectRight(each[i], static_cast<float>(1 << i));
  EXPECT_EQ(devices_[0]->health(), Health::kFailed);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(devices_[i]->health(), Health::kHealthy);
  EXPECT_EQ(Await(Start(doomed, input, 5)).code(), absl::StatusCode::kUnavailable);

  // The device comes back without its earlier content.
  machine_->Mend();
  EXPECT_TRUE(devices_[0]->WaitIdle(absl::InfiniteDuration()));
  ASSERT_TRUE(devices_[0]->TryRevive());
  const absl::Status gone = Await(Start(doomed, input, 5));
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
  ExpectRight(Start(doomed, Input(*doomed, 0), 5), 1);
  ExpectRight(Start(alone, Input(*alone, 0), 5), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, MultiDeviceLoss,
    ::testing::Combine(::testing::Values(Kind{"null",
                                              [] { return std::make_unique<NullMachine>(); }},
                                         Kind{"cpu", [] { return std::make_unique<CpuMachine>(); }},
                                         Kind{"cuda", [] { return Cuda(/*apart=*/false); }},
                                         Kind{"cuda_apart", [] { return Cuda(/*apart=*/true); }},
                                         Kind{"hsa", [] { return Hsa(/*apart=*/false); }},
                                         Kind{"hsa_apart", [] { return Hsa(/*apart=*/true); }},
                                         Kind{"level_zero", LevelZero, /*may_be_missing=*/true}),
                       ::testing::Bool()),
    [](const auto& info) {
      return std::get<0>(info.param).name + (std::get<1>(info.param) ? "_in_pieces" : "");
    });

}  // namespace
}  // namespace kiln::runtime
