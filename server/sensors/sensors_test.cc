#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "server/sensors/device_sensors.h"
#include "server/sensors/hwmon.h"
#include "server/sensors/nvml.h"
#include "tests/eventually.h"
#include "tests/stand_ins/gate.h"

namespace kiln::sensors {
namespace {

using ::testing::Optional;

stand_ins::Gate* GateOfNvml() {
  void* const library = dlopen(KILN_NVML_STAND_IN, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  const auto find = reinterpret_cast<stand_ins::Gate* (*)()>(dlsym(library, "KilnNvmlStandInGate"));
  return find();
}

// A folder that looks like sysfs.
class SensorsTest : public ::testing::Test {
 protected:
  SensorsTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    sysfs_ = ::testing::TempDir() + "/sysfs_" + name;
    std::filesystem::remove_all(sysfs_);
    std::filesystem::create_directories(sysfs_);
  }
  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(sysfs_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  std::string sysfs_;
};

TEST_F(SensorsTest, ReadsAPciDevice) {
  const std::string folder = "bus/pci/devices/0000:03:00.0/hwmon/hwmon4/";
  Write(folder + "temp1_input", "61500");
  Write(folder + "power1_average", "217250000");
  Write(folder + "freq1_input", "1410000000");
  Readings readings = ReadPciDevice(sysfs_, "0000:03:00.0");
  EXPECT_THAT(readings.celsius, Optional(61.5));
  EXPECT_THAT(readings.watts, Optional(217.25));
  EXPECT_THAT(readings.clock_hertz, Optional(1.41e9));
  // The present power rather than a mean.
  Write(folder + "power1_input", "200000000");
  readings = ReadPciDevice(sysfs_, "0000:03:00.0");
  EXPECT_THAT(readings.watts, Optional(200.0));
}

TEST_F(SensorsTest, LeavesOutWhatCannotBeRead) {
  const std::string folder = "bus/pci/devices/0000:03:00.0/hwmon/hwmon4/";
  Write(folder + "temp1_input", "");
  Write(folder + "power1_input", "much");
  for (const std::string address : {"0000:03:00.0", "0000:04:00.0", ""}) {
    const Readings readings = ReadPciDevice(sysfs_, address);
    EXPECT_FALSE(readings.celsius || readings.watts || readings.clock_hertz) << address;
  }
  const Readings readings = ReadProcessors(sysfs_);
  EXPECT_FALSE(readings.celsius || readings.watts || readings.clock_hertz);
}

TEST_F(SensorsTest, ReadsProcessors) {
  Write("class/hwmon/hwmon0/name", "nvme");
  Write("class/hwmon/hwmon0/temp1_input", "90000");
  for (const auto& [folder, celsius] :
       {std::pair("hwmon1", "51000"), std::pair("hwmon2", "54000")}) {
    Write(std::string("class/hwmon/") + folder + "/name", "coretemp");
    Write(std::string("class/hwmon/") + folder + "/temp1_input", celsius);
  }
  Write("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000");
  Write("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000");
  Write("devices/system/cpu/cpufreq/boost", "1");
  const Readings readings = ReadProcessors(sysfs_);
  EXPECT_THAT(readings.celsius, Optional(54.0));
  EXPECT_THAT(readings.clock_hertz, Optional(2.5e9));
  EXPECT_FALSE(readings.watts);
}

TEST_F(SensorsTest, NvmlReadsTheGpuAtAnAddress) {
  auto nvml = OpenNvml(KILN_NVML_STAND_IN);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  Readings readings = (*nvml)->Read("0001:3b:00.0");
  EXPECT_THAT(readings.celsius, Optional(61.0));
  EXPECT_THAT(readings.watts, Optional(217.5));
  EXPECT_THAT(readings.clock_hertz, Optional(1.41e9));
  // One that is lost, and none.
  for (const char* address : {"0001:3c:00.0", "0001:3d:00.0"}) {
    readings = (*nvml)->Read(address);
    EXPECT_FALSE(readings.celsius || readings.watts || readings.clock_hertz) << address;
  }
}

TEST_F(SensorsTest, SaysThatNvmlIsMissing) {
  const auto nvml = OpenNvml("libkiln_has_no_such_library.so");
  EXPECT_EQ(nvml.status().code(), absl::StatusCode::kNotFound) << nvml.status();
}

drivers::DeviceInfo Device(const std::string& name, const std::string& pci_address) {
  drivers::DeviceInfo info;
  info.name = name;
  info.pci_address = pci_address;
  return info;
}

TEST_F(SensorsTest, ReadsEachDeviceWithWhatKnowsIt) {
  Write("class/hwmon/hwmon0/name", "k10temp");
  Write("class/hwmon/hwmon0/temp1_input", "48000");
  Write("bus/pci/devices/0000:03:00.0/hwmon/hwmon4/temp1_input", "70000");
  absl::Time now = absl::UnixEpoch();
  DeviceSensors::Options options;
  options.devices = {Device("cpu:0", ""), Device("hsa:0", "0000:03:00.0"),
                     Device("cuda:0", "0001:3b:00.0"), Device("null:0", "")};
  options.devices[0].is_host_processor = true;
  options.steady_now = [&now] { return now; };
  options.sysfs = sysfs_;
  options.nvml_library = KILN_NVML_STAND_IN;
  options.interval = absl::InfiniteDuration();
  const DeviceSensors sensors(std::move(options));
  sensors.WaitForReadings();
  EXPECT_THAT(sensors.Of("cpu:0").celsius, Optional(48.0));
  EXPECT_THAT(sensors.Of("hsa:0").celsius, Optional(70.0));
  EXPECT_THAT(sensors.Of("cuda:0").celsius, Optional(61.0));
  EXPECT_FALSE(sensors.Of("null:0").celsius);
  EXPECT_FALSE(sensors.Of("cuda:1").celsius);
  now += absl::Seconds(61);
  EXPECT_FALSE(sensors.Of("cuda:0").celsius) << "old readings say nothing about a GPU that hangs";
}

TEST_F(SensorsTest, ALibraryThatHangsHoldsUpNoStop) {
  auto* const gate = GateOfNvml();
  gate->Close();
  {
    absl::Time now = absl::UnixEpoch();
    DeviceSensors::Options options;
    options.devices = {Device("cuda:0", "0001:3e:00.0")};
    options.steady_now = [&now] { return now; };
    options.sysfs = sysfs_;
    options.nvml_library = KILN_NVML_STAND_IN;
    options.patience = absl::ZeroDuration();
    DeviceSensors sensors(std::move(options));
    EXPECT_TRUE(::kiln::testing::Eventually([&] { return gate->held() == 1; }));
    EXPECT_FALSE(sensors.Of("cuda:0").celsius);
    EXPECT_FALSE(sensors.Stop());
    EXPECT_FALSE(sensors.Stop());
  }
  // The thread uses nothing that is gone now.
  gate->Open();
  EXPECT_TRUE(::kiln::testing::Eventually([&] { return gate->held() == 0; }));
}

TEST_F(SensorsTest, NeedsNoThreadWithoutSensors) {
  DeviceSensors::Options options;
  options.devices = {Device("null:0", ""), Device("cuda:0", "")};
  options.steady_now = absl::UnixEpoch;
  DeviceSensors sensors(std::move(options));
  EXPECT_FALSE(sensors.Of("null:0").celsius);
  EXPECT_TRUE(sensors.Stop());
}

}  // namespace
}  // namespace kiln::sensors
