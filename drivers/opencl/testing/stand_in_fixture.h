// A test fixture: the driver on the stand-in library.
#ifndef KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/opencl/device.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/opencl/control.h"

namespace kiln::drivers::opencl {

inline constexpr int kOutOfResources = -5;  // CL_OUT_OF_RESOURCES

class OpenClTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = DynamicLibrary::Open(KILN_OPENCL_STAND_IN);
    ASSERT_TRUE(library.ok()) << library.status();
    stand_ins::opencl::Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find("KilnOpenClStandInControl", &find).ok());
    library_ = *std::move(library);
    control_ = find();
    control_->has_platform = true;
    control_->gpus = 1;
    control_->cpus = 1;
    control_->has_shared_virtual_memory = true;
    control_->reaches_all_memory = false;
    control_->out_of_memory = false;
    control_->next_launch_refused = 0;
    control_->next_launch_fails = 0;
    control_->lost = false;
    control_->unplugged = false;
    control_->gpus_share_memory = false;
    control_->time.ShowRealTime();
    control_->launch_gate.Open();
    control_->has_command_buffers = false;
    control_->command_buffer_capabilities = 0;
    control_->required_queue_properties = 0;
    control_->recorded_launches_max = 1 << 20;
    control_->kernel = nullptr;
    control_->finalize_refused = 0;
    control_->next_buffer_refused = 0;
    control_->next_buffer_fails = 0;
    control_->misuses = 0;
    control_->driver_version = 1;
    control_->gives_binaries = true;
    control_->binary_form = 1;
    control_->sources_built = 0;
    control_->binaries_built = 0;
  }
  void TearDown() override {
    if (control_ != nullptr) control_->launch_gate.Open();
    devices_.clear();
    if (control_ != nullptr) {
      EXPECT_EQ(control_->objects, 0);
      EXPECT_EQ(control_->misuses, 0);
    }
  }

  void Open(bool sharing_host_memory = false, int64_t memory_limit = 0) {
    auto devices = OpenClDriver({.sharing_host_memory = sharing_host_memory,
                                 .memory_limit_bytes_per_device = memory_limit,
                                 .command_buffers = command_buffers_,
                                 .on_broken_command_buffers =
                                     [this](const std::string& device, const absl::Status& why) {
                                       broken_.push_back(absl::StrCat(device, ": ", why.message()));
                                     },
                                 .library = KILN_OPENCL_STAND_IN})
                       .Enumerate(&why_none_);
    ASSERT_TRUE(devices.ok()) << devices.status();
    devices_ = *std::move(devices);
  }
  Device& device() { return *devices_.front(); }
  // OpenClDevice::waiting of device().
  int waiting() { return static_cast<OpenClDevice&>(device()).waiting(); }

  // A kernel of this many arguments, each a buffer. It takes addresses.
  static KernelImage Image(int arguments) {
    KernelImage image;
    image.name = "mixer";
    image.architecture = "opencl-c";
    image.code = "__kernel void any_name(";
    for (int i = 0; i < arguments; ++i)
      absl::StrAppend(&image.code, i > 0 ? ", " : "", "__global float* p", i);
    image.code += ") {}";
    image.num_arguments = arguments;
    return image;
  }

  // The same kernel with a slot table.
  static KernelImage TableImage(int arguments) {
    KernelImage image = Image(arguments);
    image.takes_slot_table = true;
    image.code = "__kernel void any_name(__global const ulong* table";
    for (int i = 0; i < arguments; ++i) absl::StrAppend(&image.code, ", ulong p", i);
    image.code += ") {}";
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

  std::unique_ptr<DynamicLibrary> library_;
  stand_ins::opencl::Control* control_ = nullptr;
  CommandBuffers command_buffers_ = CommandBuffers::kWhereTheyHelp;
  std::vector<std::string> broken_;  // reports about command buffers, from running lists
  std::string why_none_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_
