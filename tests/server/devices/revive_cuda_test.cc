// NVIDIA GPUs that are lost and recover, on the stand-in for CUDA and with real programs.
#include <stop_token>
#include <thread>

#include "compiler/compiler.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/cuda/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"
#include "tests/stand_ins/cuda/control.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ILLEGAL_ADDRESS.
constexpr int kLost = 214;
constexpr int kFault = 700;

class ReviveCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = drivers::DynamicLibrary::Open(KILN_CUDA_STAND_IN);
    ASSERT_TRUE(library.ok()) << library.status();
    stand_ins::cuda::Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find("KilnCudaStandInControl", &find).ok());
    ASSERT_TRUE((*library)->Find("KilnCudaStandInMessage", &message_).ok());
    library_ = *std::move(library);
    control_ = find();
    control_->devices = 2;
    TestDaemonOptions options;
    options.compile = compiler::Compile;
    options.driver = std::make_unique<drivers::cuda::CudaDriver>(
        drivers::cuda::CudaOptions{.library = KILN_CUDA_STAND_IN});
    daemon_ = std::make_unique<TestDaemon>(std::move(options));
    client_ = std::make_unique<Client>(daemon_->address(), 0, "cuda:0");
  }
  void TearDown() override {
    client_.reset();
    daemon_.reset();
    EXPECT_EQ(control_->objects, 0);
    EXPECT_EQ(control_->mistakes, 0) << message_();
  }

  v1::Device::Health Health() {
    grpc::ClientContext context;
    v1::ListDevicesResponse devices;
    EXPECT_TRUE(client_->devices->ListDevices(&context, {}, &devices).ok());
    return devices.devices(0).health();
  }

  std::unique_ptr<drivers::DynamicLibrary> library_;
  stand_ins::cuda::Control* control_ = nullptr;
  const char* (*message_)() = nullptr;
  std::unique_ptr<TestDaemon> daemon_;
  std::unique_ptr<Client> client_;
};

TEST_F(ReviveCudaTest, TheSameProgramRunsAgainWhileAnotherDeviceNeverStops) {
  Client neighbour(daemon_->address(), 0, "cuda:1");
  auto beside = neighbour.Connect();
  DefineCounter(*beside);
  // Ends with this test, even if it fails.
  std::jthread trainer([&](const std::stop_token& over) {
    float count = 0;
    for (uint64_t handle = 100; !over.stop_requested() || count < 10; ++handle) {
      beside->Send(RunProgram(1, {1, 2}, {handle}));
      ASSERT_THAT(Floats(beside->Call(Read(handle)).data()), ElementsAre(count += 1));
    }
  });

  auto stream = client_->Connect();
  DefineCounter(*stream);
  stream->Send(RunProgram(1, {1, 2}, {3}));
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
  control_->lost_device = 0;
  control_->lost = kLost;
  const v1::Result failed = stream->Call(RunProgram(1, {1, 2}, {4}));
  EXPECT_EQ(Reason(failed.error()), "DEVICE_FAILED");
  EXPECT_THAT(failed.error().message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  EXPECT_EQ(Health(), v1::Device::FAILED);

  control_->lost = 0;
  ASSERT_TRUE(Eventually([&] { return Health() == v1::Device::HEALTHY; }));
  for (const uint64_t handle : {2, 3})
    EXPECT_EQ(Reason(stream->Call(Read(handle)).error()), "DEVICE_LOST");
  // The program is still known.
  stream->Send(Write(10, {5}));
  stream->Send(Write(11, {2}));
  stream->Send(RunProgram(1, {10, 11}, {12}));
  EXPECT_THAT(Floats(stream->Call(Read(10)).data()), ElementsAre(7));
}

TEST_F(ReviveCudaTest, AFaultInAKernelIsALossThatPasses) {
  auto stream = client_->Connect();
  DefineCounter(*stream);
  for (uint64_t handle = 10; handle < 40; handle += 10) {
    stream->Send(Write(handle, {5}));
    stream->Send(Write(handle + 1, {2}));
    stream->Send(RunProgram(1, {handle, handle + 1}, {handle + 2}));
    EXPECT_THAT(Floats(stream->Call(Read(handle)).data()), ElementsAre(7));
    control_->next_launch_fails = kFault;
    stream->Send(RunProgram(1, {handle, handle + 1}, {handle + 3}));
    EXPECT_EQ(Reason(stream->Call(Read(handle + 3)).error()), "DEVICE_FAILED");
    ASSERT_TRUE(Eventually([&] { return Health() == v1::Device::HEALTHY; }));
  }
}

}  // namespace
}  // namespace kiln::testing
