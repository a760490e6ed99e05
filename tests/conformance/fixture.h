// The fixture of all tests: a driver's devices, and short forms of common operations.
#ifndef KILN_TESTS_CONFORMANCE_FIXTURE_H_
#define KILN_TESTS_CONFORMANCE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/interface/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/driver_case.h"

namespace kiln::conformance {

using drivers::Buffer;
using drivers::Command;
using drivers::CommandList;
using drivers::CopyCommand;
using drivers::Device;
using drivers::FillCommand;
using drivers::KernelImage;
using drivers::LaunchCommand;
using drivers::LoadedKernel;
using drivers::PreparedList;
using drivers::SignalCommand;
using drivers::SignalGroup;
using drivers::Signals;
using drivers::SlotRange;
using drivers::SubmitOptions;
using drivers::SubmitResult;
using drivers::WaitCommand;

class ConformanceTest : public testing::TestWithParam<DriverCase> {
 protected:
  void SetUp() override;

  Device& device(int i = 0) { return *devices_[i]; }
  // Requires: the feature kKernels.
  TestKernels kernels() { return GetParam().kernels(device().info().target); }

  std::unique_ptr<Buffer> Allocate(int64_t bytes, int device_number = 0);
  std::unique_ptr<LoadedKernel> Load(const KernelImage& image, int device_number = 0);
  std::unique_ptr<PreparedList> Prepare(int num_slots, std::vector<Command> commands,
                                        int device_number = 0);
  // Submits and waits for the result.
  SubmitResult Run(PreparedList& list, const std::vector<Buffer*>& slots,
                   SubmitOptions options = {}, int device_number = 0);

  template <typename T>
  void Write(Buffer& buffer, const std::vector<T>& values, int device_number = 0) {
    auto* bytes = reinterpret_cast<const char*>(values.data());
    absl::Status status =
        device(device_number).CopyToDevice(buffer, 0, {bytes, values.size() * sizeof(T)});
    ASSERT_TRUE(status.ok()) << status;
  }
  template <typename T>
  std::vector<T> Read(const Buffer& buffer, int64_t count, int device_number = 0) {
    std::vector<T> values(count);
    auto* bytes = reinterpret_cast<char*>(values.data());
    absl::Status status =
        device(device_number).CopyToHost(buffer, 0, {bytes, values.size() * sizeof(T)});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

 private:
  KernelImage Finished(const KernelImage& image, int device_number);

  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<drivers::Driver> finisher_;  // not the devices' own driver, as in kilnd
};

// Skips the test if the driver does not support the feature.
#define KILN_REQUIRE(feature)                                           \
  if (const std::string why = GetParam().WhyNot(feature); !why.empty()) \
  GTEST_SKIP() << GetParam().name << " has no " << Name(feature) << ": " << why

}  // namespace kiln::conformance

#endif  // KILN_TESTS_CONFORMANCE_FIXTURE_H_
