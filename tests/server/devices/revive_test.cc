// A device that is lost and recovers, beside one on which work continues.
#include <atomic>
#include <thread>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReviveTest : public ::testing::Test {
 protected:
  static TestDaemonOptions TwoDevices() {
    TestDaemonOptions options;
    options.devices = 2;
    return options;
  }
  v1::Device::Health HealthOf(Client& client) {
    grpc::ClientContext context;
    v1::ListDevicesResponse devices;
    EXPECT_TRUE(client.devices->ListDevices(&context, {}, &devices).ok());
    return devices.devices(0).health();
  }

  TestDaemon daemon_{TwoDevices()};
  Client client_{daemon_.address(), 0, "cpu:0"};
};

TEST_F(ReviveTest, TheSameProgramRunsAgainWhileAnotherDeviceNeverStops) {
  Client neighbour(daemon_.address(), 0, "cpu:1");
  auto beside = neighbour.Connect();
  DefineCounter(*beside);
  std::atomic<bool> over = false;
  std::thread trainer([&] {
    float count = 0;
    for (uint64_t handle = 100; !over || count < 10; ++handle) {
      beside->Send(RunProgram(1, {1, 2}, {handle}));
      ASSERT_THAT(Floats(beside->Call(Read(handle)).data()), ElementsAre(count += 1));
    }
  });

  auto stream = client_.Connect();
  DefineCounter(*stream);
  stream->Send(RunProgram(1, {1, 2}, {3}));
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
  daemon_.device(0).Break("fell off the bus");
  const v1::Result failed = stream->Call(RunProgram(1, {1, 2}, {4}));
  EXPECT_EQ(Reason(failed.error()), "DEVICE_FAILED");
  EXPECT_THAT(failed.error().message(), HasSubstr("; use another device"));
  EXPECT_EQ(HealthOf(client_), v1::Device::FAILED);

  daemon_.device(0).Mend();
  ASSERT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::HEALTHY; }));
  // Values on it are lost and report it; values that failed earlier keep their own error.
  for (const uint64_t handle : {2, 3}) {
    const v1::Result lost = stream->Call(Read(handle));
    EXPECT_EQ(lost.error().code(), grpc::UNAVAILABLE);
    EXPECT_EQ(Reason(lost.error()), "DEVICE_LOST");
    EXPECT_THAT(lost.error().message(), HasSubstr("lost when device cpu:0 failed"));
  }
  EXPECT_EQ(Reason(stream->Call(Read(4)).error()), "DEVICE_FAILED");
  EXPECT_EQ(Reason(stream->Call(RunProgram(1, {1, 2}, {5})).error()), "DEVICE_LOST");
  // The program is still known.
  stream->Send(Write(10, {5}));
  stream->Send(Write(11, {2}));
  stream->Send(RunProgram(1, {10, 11}, {12}));
  EXPECT_THAT(Floats(stream->Call(Read(10)).data()), ElementsAre(7));

  over = true;
  trainer.join();
}

TEST_F(ReviveTest, ProgramsOfVariableSizesAreBoundAgain) {
  auto stream = client_.Connect();
  stream->Call(Define(1, VariableAddGraph(10)));
  const auto run = [&](uint64_t first) {
    v1::ConnectRequest request = RunProgram(1, {first, first}, {first + 1});
    (*request.mutable_run()->mutable_bindings())["n"] = 3;
    stream->Send(Write(first, {1, 2, 3}));
    stream->Send(request);
    return Floats(stream->Call(Read(first + 1)).data());
  };
  EXPECT_THAT(run(1), ElementsAre(2, 4, 6));
  for (const uint64_t first : {10, 20}) {
    daemon_.device(0).Break("fell off the bus");
    daemon_.device(0).Mend();
    ASSERT_TRUE(Eventually([&] { return daemon_.device(0).Health().ok(); }));
    ASSERT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::HEALTHY; }));
    EXPECT_THAT(run(first), ElementsAre(2, 4, 6));
    EXPECT_THAT(run(first + 2), ElementsAre(2, 4, 6));
  }
}

TEST_F(ReviveTest, NotWhileACopyIsUnderWay) {
  daemon_.device(0).HideMemory();
  daemon_.device(0).HoldCopies();
  auto stream = client_.Connect();
  const auto write = stream->Send(Write(1, {5}));
  ASSERT_TRUE(Eventually([&] { return daemon_.device(0).held_copies() == 1; }));
  daemon_.device(0).Break("fell off the bus");
  daemon_.device(0).Mend();
  ASSERT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::FAILED; }));
  daemon_.Advance(absl::ZeroDuration());  // the daemon tries to revive the device here
  EXPECT_EQ(HealthOf(client_), v1::Device::FAILED);
  daemon_.device(0).LetCopiesGo();
  EXPECT_EQ(Reason(stream->Answer(write).error()), "DEVICE_FAILED");
  EXPECT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::HEALTHY; }));
}

TEST_F(ReviveTest, ALossIsNoticedThoughNobodyUsesTheDevice) {
  daemon_.device(0).Break("fell off the bus");
  EXPECT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::FAILED; }));
  daemon_.device(0).Mend();
  EXPECT_TRUE(Eventually([&] { return HealthOf(client_) == v1::Device::HEALTHY; }));
}

}  // namespace
}  // namespace kiln::testing
