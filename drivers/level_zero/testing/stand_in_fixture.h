// A test fixture: the driver on the stand-in library, whose kernels run on the host here: each adds
// 1 to the first 32-bit number of its last argument.
#ifndef KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_

#include <cstdint>
#include <future>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/common/dynamic_library.h"
#include "drivers/level_zero/device.h"
#include "drivers/level_zero/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/level_zero/control.h"

namespace kiln::drivers::level_zero {

class LevelZeroTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = DynamicLibrary::Open(KILN_LEVEL_ZERO_STAND_IN);
    ASSERT_TRUE(library.ok()) << library.status();
    stand_ins::level_zero::Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find("KilnLevelZeroStandInControl", &find).ok());
    ASSERT_TRUE((*library)->Find("KilnLevelZeroStandInMessage", &message_).ok());
    library_ = *std::move(library);
    control_ = find();
    control_->host_kernels = true;
    control_->devices = 1;
    control_->integrated = false;
    control_->fp64 = true;
    control_->copy_queues = true;
    control_->driver_version = 1;
    control_->spirv_minor = 4;
    control_->memory_bytes = int64_t{2} << 30;
    control_->allocation_bytes_max = int64_t{1} << 30;
    control_->block_threads_max = 1024;
    control_->gives_binaries = true;
    control_->time.ShowRealTime();
    control_->gate.Open();
    control_->init_fails = 0;
    control_->out_of_memory = false;
    control_->next_build_fails = false;
    control_->next_execution_refused = 0;
    control_->next_append_refused = 0;
    control_->lost = 0;
    control_->lost_device = 0;
    control_->kernels_until_lost = 0;
    mistakes_ = control_->mistakes;
  }
  void TearDown() override {
    if (control_ != nullptr) control_->gate.Open();
    devices_.clear();
    if (control_ == nullptr) return;
    EXPECT_EQ(control_->objects, 0);
    EXPECT_EQ(control_->mistakes, mistakes_) << message_();
  }

  void Open(LevelZeroOptions options = {}) {
    options.library = KILN_LEVEL_ZERO_STAND_IN;
    auto devices = LevelZeroDriver(std::move(options)).Enumerate(&why_none_);
    ASSERT_TRUE(devices.ok()) << devices.status();
    devices_ = *std::move(devices);
  }
  Device& device() { return *devices_.front(); }
  // LevelZeroDevice::waiting of device().
  int waiting() { return static_cast<LevelZeroDevice&>(device()).waiting(); }

  // A module with one entry point, "kernel", that does nothing. Its parameters are `arguments`
  // pointers or, with a slot table, the table and `arguments` numbers. `block`: the required
  // threads of a block; 0: any.
  static std::string Spirv(int arguments, bool takes_table, uint32_t block = 0) {
    enum : uint32_t { kVoid = 1, kLong, kPointer, kFunctionType, kFunction, kLabel, kMade, kFirst };
    const auto parameters = static_cast<uint32_t>(arguments + (takes_table ? 1 : 0));
    std::vector<uint32_t> words = {0x07230203, 0x00010200, 0, kFirst + parameters, 0};
    const auto add = [&words](uint32_t opcode, const std::vector<uint32_t>& operands) {
      words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
      words.insert(words.end(), operands.begin(), operands.end());
    };
    const auto type_of = [&](uint32_t i) { return takes_table && i > 0 ? kLong : kPointer; };
    for (const uint32_t capability : {6u, 4u, 11u}) add(17, {capability});
    add(14, {2, 2});                                  // Physical64, OpenCL
    add(15, {6, kFunction, 0x6e72656b, 0x00006c65});  // "kernel"
    if (block > 0) add(16, {kFunction, 17, block, 1, 1});
    add(19, {kVoid});
    add(21, {kLong, 64, 0});
    add(32, {kPointer, 5, kLong});
    std::vector<uint32_t> signature = {kFunctionType, kVoid};
    for (uint32_t i = 0; i < parameters; ++i) signature.push_back(type_of(i));
    add(33, signature);
    add(54, {kVoid, kFunction, 0, kFunctionType});
    for (uint32_t i = 0; i < parameters; ++i) add(55, {type_of(i), kFirst + i});
    add(248, {kLabel});
    if (takes_table && parameters > 1) add(120, {kPointer, kMade, kFirst + 1});
    add(253, {});
    add(56, {});
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
  }

  // A kernel of this many arguments, each a buffer of 32-bit numbers. It takes addresses.
  static KernelImage Image(int arguments) {
    KernelImage image;
    image.name = "counter";
    image.architecture = "spirv64";
    image.code = Spirv(arguments, /*takes_table=*/false);
    image.num_arguments = arguments;
    image.access.assign(arguments - 1, Access::kRead);
    image.access.push_back(Access::kReadWrite);
    return image;
  }
  // The same kernel with a slot table.
  static KernelImage TableImage(int arguments) {
    KernelImage image = Image(arguments);
    image.takes_slot_table = true;
    image.code = Spirv(arguments, /*takes_table=*/true);
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

  std::unique_ptr<Buffer> Zeros(int64_t bytes) {
    auto buffer = *device().Allocate(bytes);
    const std::string zeros(static_cast<size_t>(bytes), '\0');
    EXPECT_TRUE(device().CopyToDevice(*buffer, 0, zeros).ok());
    return buffer;
  }
  // Returns one number of the buffer.
  uint32_t Read(const Buffer& buffer, int64_t offset = 0) {
    uint32_t value = 0;
    const absl::Status status =
        device().CopyToHost(buffer, offset, {reinterpret_cast<char*>(&value), sizeof(value)});
    EXPECT_TRUE(status.ok()) << status;
    return value;
  }

  std::unique_ptr<DynamicLibrary> library_;
  stand_ins::level_zero::Control* control_ = nullptr;
  const char* (*message_)() = nullptr;
  int64_t mistakes_ = 0;
  std::string why_none_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_
