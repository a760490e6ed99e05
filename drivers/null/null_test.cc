// Tests that the conformance suite cannot do on every driver: loss of a device.
#include <atomic>
#include <future>

#include "drivers/null/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers::null {
namespace {

using ::testing::HasSubstr;

TEST(NullDeviceTest, IsLostAndRevived) {
  std::atomic<bool> broken = false;
  NullDriver driver({.fault = [&broken]() -> absl::Status {
    if (broken) return absl::InternalError("pulled out");
    return absl::OkStatus();
  }});
  std::string why_none;
  auto devices = *driver.Enumerate(&why_none);
  Device& device = *devices.front();
  const auto list = *device.Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  const auto run = [&](Buffer& buffer) -> absl::Status {
    Buffer* slots[] = {&buffer};
    std::promise<absl::Status> done;
    const absl::Status submitted = device.Submit(
        *list, slots, {}, [&](const SubmitResult& result) { done.set_value(result.status); });
    return submitted.ok() ? done.get_future().get() : submitted;
  };
  auto buffer = *device.Allocate(64);
  EXPECT_TRUE(run(*buffer).ok());
  broken = true;
  EXPECT_THAT(run(*buffer).message(), HasSubstr("the device is lost: pulled out"));
  EXPECT_EQ(device.Allocate(64).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device.Revive().ok());
  broken = false;
  EXPECT_FALSE(device.Health().ok()) << "lost is lost until it is revived";
  EXPECT_TRUE(device.Revive().ok());
  EXPECT_TRUE(device.Health().ok());
  EXPECT_THAT(run(*buffer).message(), HasSubstr("was lost with it"));
  EXPECT_TRUE(run(**device.Allocate(64)).ok());
}

}  // namespace
}  // namespace kiln::drivers::null
