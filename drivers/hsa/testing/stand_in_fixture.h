// A test fixture: the driver on the stand-in runtime.
#ifndef KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_

#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/hsa/device.h"
#include "drivers/hsa/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/hsa/control.h"

namespace kiln::drivers::hsa {

class HsaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = DynamicLibrary::Open(KILN_HSA_STAND_IN);
    ASSERT_TRUE(library.ok()) << library.status();
    stand_ins::hsa::Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find("KilnHsaStandInControl", &find).ok());
    ASSERT_TRUE((*library)->Find("KilnHsaStandInMessage", &message_).ok());
    library_ = *std::move(library);
    control_ = find();
    control_->devices = 1;
    control_->isa = "amdgcn-amd-amdhsa--gfx1100:kiln-host-twin+";
    control_->wave = 32;
    control_->peers = true;
    control_->memory_bytes = int64_t{2} << 30;
    control_->queue_packets_max = 4096;
    control_->time.ShowRealTime();
    control_->launch_gate.Open();
    control_->init_fails = 0;
    control_->out_of_memory = false;
    control_->next_load_fails = 0;
    control_->next_copy_fails = 0;
    control_->next_launch_fails = 0;
    control_->lost = 0;
    control_->lost_device = 0;
    mistakes_ = control_->mistakes;
  }
  void TearDown() override {
    if (control_ != nullptr) control_->launch_gate.Open();
    devices_.clear();
    if (control_ == nullptr) return;
    EXPECT_EQ(control_->objects, 0);
    EXPECT_EQ(control_->mistakes, mistakes_) << message_();
  }

  void Open(int64_t memory_limit = 0, SteadyClock now = std::chrono::steady_clock::now) {
    auto devices = HsaDriver({.memory_limit_bytes_per_device = memory_limit,
                              .library = KILN_HSA_STAND_IN,
                              .now = std::move(now)})
                       .Enumerate(&why_none_);
    ASSERT_TRUE(devices.ok()) << devices.status();
    devices_ = *std::move(devices);
  }
  Device& device() { return *devices_.front(); }
  // HsaDevice::waiting of device().
  int waiting() { return static_cast<HsaDevice&>(device()).waiting(); }

  // A kernel of 1 or 2 arguments, each a buffer of 32-bit numbers. One thread adds 1 to the first
  // number of the last buffer. It takes addresses.
  static KernelImage Image(int arguments, bool by_table = false) {
    KernelImage image;
    image.name = "counter";
    image.architecture = "amdgcn";
    std::ifstream file(absl::StrCat(KILN_HSA_TEST_KERNELS, by_table ? "/table" : "",
                                    by_table ? "_counter_" : "/counter_", arguments, ".co"),
                       std::ios::binary);
    image.code.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    image.num_arguments = arguments;
    image.access.assign(arguments - 1, Access::kRead);
    image.access.push_back(Access::kReadWrite);
    image.takes_slot_table = by_table;
    return image;
  }
  // The same kernel with a slot table.
  static KernelImage TableImage(int arguments) { return Image(arguments, /*by_table=*/true); }

  SubmitResult Run(PreparedList& list, const std::vector<Buffer*>& slots,
                   SubmitOptions options = {}) {
    std::promise<SubmitResult> promise;
    const absl::Status status =
        device().Submit(list, slots, std::move(options),
                        [&promise](SubmitResult result) { promise.set_value(std::move(result)); });
    EXPECT_TRUE(status.ok()) << status;
    return promise.get_future().get();
  }

  // The buffer's first number.
  uint32_t ReadFirst(const Buffer& buffer) {
    uint32_t value = 0;
    const absl::Status status =
        device().CopyToHost(buffer, 0, {reinterpret_cast<char*>(&value), sizeof(value)});
    EXPECT_TRUE(status.ok()) << status;
    return value;
  }
  void Clear(Buffer& buffer) {
    const absl::Status status =
        device().CopyToDevice(buffer, 0, std::string(static_cast<size_t>(buffer.bytes()), '\0'));
    EXPECT_TRUE(status.ok()) << status;
  }

  std::unique_ptr<DynamicLibrary> library_;
  stand_ins::hsa::Control* control_ = nullptr;
  const char* (*message_)() = nullptr;
  int64_t mistakes_ = 0;
  std::string why_none_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_
