// A test fixture: the driver on the stand-in library.
#ifndef KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/cuda/device.h"
#include "drivers/cuda/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/cuda/control.h"

namespace kiln::drivers::cuda {

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = DynamicLibrary::Open(KILN_CUDA_STAND_IN);
    ASSERT_TRUE(library.ok()) << library.status();
    stand_ins::cuda::Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find("KilnCudaStandInControl", &find).ok());
    ASSERT_TRUE((*library)->Find("KilnCudaStandInMessage", &message_).ok());
    library_ = *std::move(library);
    control_ = find();
    control_->devices = 1;
    control_->driver_version = 13000;
    control_->compute_capability = 80;
    control_->peers = true;
    control_->memory_bytes = int64_t{2} << 30;
    control_->bytes_moved_max = INT64_MAX;
    control_->time.ShowRealTime();
    control_->launch_gate.Open();
    control_->init_fails = 0;
    control_->out_of_memory = false;
    control_->next_load_fails = 0;
    control_->next_launch_refused = 0;
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

  void Open(int64_t memory_limit = 0) {
    auto devices =
        CudaDriver({.memory_limit_bytes_per_device = memory_limit, .library = KILN_CUDA_STAND_IN})
            .Enumerate(&why_none_);
    ASSERT_TRUE(devices.ok()) << devices.status();
    devices_ = *std::move(devices);
  }
  Device& device() { return *devices_.front(); }
  // CudaDevice::waiting of device().
  int waiting() { return static_cast<CudaDevice&>(device()).waiting(); }

  // A kernel with this many arguments, each a buffer of 32-bit numbers. One thread adds 1 to the
  // first number of the last buffer. It takes addresses.
  static KernelImage Image(int arguments) {
    KernelImage image;
    image.name = "counter";
    image.architecture = "nvptx64";
    image.code = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry kernel(";
    for (int i = 0; i < arguments; ++i)
      absl::StrAppend(&image.code, i > 0 ? ", " : "", ".param .u64 p", i);
    absl::StrAppend(&image.code, ") {\n.reg .b64 %a;\n.reg .b32 %v;\n", "ld.param.u64 %a, [p",
                    arguments - 1,
                    "];\nld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\n"
                    "st.global.u32 [%a], %v;\nret;\n}\n");
    image.num_arguments = arguments;
    image.access.assign(arguments - 1, Access::kRead);
    image.access.push_back(Access::kReadWrite);
    return image;
  }

  // The same kernel with a slot table.
  static KernelImage TableImage(int arguments) {
    KernelImage image = Image(arguments);
    image.takes_slot_table = true;
    image.code =
        ".version 7.8\n.target sm_75\n.address_size 64\n"
        ".visible .entry kernel(.param .u64 table";
    for (int i = 0; i < arguments; ++i) absl::StrAppend(&image.code, ", .param .u64 p", i);
    absl::StrAppend(&image.code, ") {\n.reg .b64 %t, %s, %a;\n.reg .b32 %v;\n",
                    "ld.param.u64 %t, [table];\nld.param.u64 %a, [p", arguments - 1,
                    "];\nshr.u64 %s, %a, ", kSlotOffsetBits, ";\nshl.b64 %s, %s, 3;\n",
                    "add.s64 %t, %t, %s;\nld.global.nc.u64 %s, [%t];\nand.b64 %a, %a, ",
                    kSlotOffsetMask, ";\nadd.s64 %a, %a, %s;\n",
                    "ld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\n"
                    "st.global.u32 [%a], %v;\nret;\n}\n");
    return image;
  }

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

  std::unique_ptr<DynamicLibrary> library_;
  stand_ins::cuda::Control* control_ = nullptr;
  const char* (*message_)() = nullptr;
  int64_t mistakes_ = 0;
  std::string why_none_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_
