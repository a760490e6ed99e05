// A test fixture: a driver on the stand-in for its vendor's library (tests/stand_ins).
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_STAND_IN_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/common/dynamic_library.h"
#include "drivers/common/queued_device/queued_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers::testing {

// `Vendor` describes a driver and its stand-in:
//   Driver, Options, Control        the driver, its options, and what controls the stand-in
//   kName                           the driver's name
//   kInstall, kTooOld               parts of the reasons if there is no library, or a wrong one
//   kLibrary, kControl, kMessage    the stand-in and its symbols; kMessage is null if it has none
//   Reset(control)                  restores what tests change
//   SetDevices(control, n)          the number of devices, which reach each other where they can
//   Separate(control)               devices do not reach each other
//   Lose(control), Recover(control) device 0 is lost; its vendor's library works again
//   kLost                           a part of the reason of that loss
//   FailNextList(control), kFailed  the next list with a launch fails; a part of the reason
//   FaultInNextList(control), kFault  the next list of several launches loses device 0, until
//                                   Recover; a part of the reason
//   kKernel, kArchitecture, Code(n, by_table)  the name, the architecture and the code of a kernel
//                                   with n arguments, each a buffer, by address or with a slot
//                                   table; one thread adds 1 to the first 32-bit number of the last
//   kComputes                       whether it does, or only runs
template <typename Vendor>
class StandInFixture : public ::testing::Test {
 protected:
  using Options = typename Vendor::Options;
  using Driver = typename Vendor::Driver;
  using Control = typename Vendor::Control;

  void SetUp() override {
    auto library = DynamicLibrary::Open(Vendor::kLibrary);
    ASSERT_TRUE(library.ok()) << library.status();
    Control* (*find)() = nullptr;
    ASSERT_TRUE((*library)->Find(Vendor::kControl, &find).ok());
    if (Vendor::kMessage != nullptr) {
      ASSERT_TRUE((*library)->Find(Vendor::kMessage, &find_message_).ok());
    }
    library_ = *std::move(library);
    control_ = find();
    Vendor::Recover(*control_);
    Vendor::SetDevices(*control_, 1);
    Vendor::Reset(*control_);
    control_->out_of_memory = false;
    control_->time.ShowRealTime();
    control_->launch_gate.Open();
    mistakes_ = control_->mistakes;
  }
  void TearDown() override {
    if (control_ != nullptr) control_->launch_gate.Open();
    devices_.clear();
    if (control_ == nullptr) return;
    EXPECT_EQ(control_->objects, 0);
    EXPECT_EQ(control_->mistakes, mistakes_) << message();
  }

  void Open(Options options = {}) {
    options.library = Vendor::kLibrary;
    auto devices = Driver(std::move(options)).Enumerate(&why_none_);
    ASSERT_TRUE(devices.ok()) << devices.status();
    devices_ = *std::move(devices);
  }
  Device& device() { return *devices_.front(); }
  // QueuedDevice::waiting of device().
  int waiting() { return static_cast<QueuedDevice&>(device()).waiting(); }
  // Returns the stand-in's message about the last mistake or failure.
  std::string message() const { return find_message_ == nullptr ? "" : find_message_(); }
  // The simulated time of the stand-in's devices.
  SteadyClock SimulatedClock() {
    return [this] { return SteadyTime(std::chrono::nanoseconds(control_->time.Nanoseconds())); };
  }

  static KernelImage Image(int arguments, bool by_table = false) {
    KernelImage image;
    image.name = Vendor::kKernel;
    image.architecture = Vendor::kArchitecture;
    image.code = Vendor::Code(arguments, by_table);
    image.num_arguments = arguments;
    image.access.assign(arguments - 1, Access::kRead);
    image.access.push_back(Access::kReadWrite);
    image.takes_slot_table = by_table;
    return image;
  }
  static KernelImage TableImage(int arguments) { return Image(arguments, /*by_table=*/true); }
  // Checks that a kernel with this change is refused.
  void ExpectRefused(const std::function<void(KernelImage&)>& change, const std::string& why) {
    KernelImage image = Image(1);
    change(image);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(why));
  }

  SubmitResult Run(PreparedList& list, const std::vector<Buffer*>& slots,
                   SubmitOptions options = {}) {
    return RunOn(device(), list, slots, std::move(options));
  }
  static SubmitResult RunOn(Device& device, PreparedList& list, const std::vector<Buffer*>& slots,
                            SubmitOptions options = {}) {
    std::promise<SubmitResult> promise;
    const absl::Status status =
        device.Submit(list, slots, std::move(options),
                      [&promise](SubmitResult result) { promise.set_value(std::move(result)); });
    EXPECT_TRUE(status.ok()) << status;
    return promise.get_future().get();
  }
  // Returns why Submit refuses a list.
  static absl::Status Refusal(Device& device, PreparedList& list, Buffer* slot) {
    Buffer* slots[] = {slot};
    return device.Submit(list, slots, {}, [](SubmitResult) { ADD_FAILURE() << "done was called"; });
  }
  // Submits the lists, of one slot, with each of the buffers. All runs are in flight, or wait for
  // room, before the first one ends; returns when all have ended.
  void SubmitForEach(const std::vector<std::unique_ptr<Buffer>>& buffers,
                     const std::vector<PreparedList*>& lists) {
    control_->launch_gate.Close();
    for (const auto& buffer : buffers) {
      Buffer* slots[] = {buffer.get()};
      for (PreparedList* list : lists) {
        const absl::Status status = device().Submit(*list, slots, {}, [](SubmitResult result) {
          EXPECT_TRUE(result.status.ok()) << result.status;
        });
        ASSERT_TRUE(status.ok()) << status;
      }
    }
    // The maximum number of lists is in flight, and the next one waits for one of them.
    EXPECT_TRUE(kiln::testing::Eventually([&] { return waiting() == 1; }));
    control_->launch_gate.Open();
    ASSERT_TRUE(device().Synchronize().ok());
  }

  // A list of one slot.
  std::unique_ptr<PreparedList> Prepare(std::vector<Command> commands) {
    return *device().Prepare({.num_slots = 1, .commands = std::move(commands)});
  }
  static LaunchCommand LaunchOf(const std::unique_ptr<LoadedKernel>& kernel, int slot = 0) {
    return {kernel.get(), {{slot, 0, 64}}};
  }
  static std::unique_ptr<Buffer> Zeros(Device& device, int64_t bytes = 64) {
    auto buffer = *device.Allocate(bytes);
    const std::string zeros(static_cast<size_t>(bytes), '\0');
    EXPECT_TRUE(device.CopyToDevice(*buffer, 0, zeros).ok());
    return buffer;
  }
  std::unique_ptr<Buffer> Zeros(int64_t bytes = 64) { return Zeros(device(), bytes); }
  std::vector<std::unique_ptr<Buffer>> ManyZeros(int count, int64_t bytes = 64) {
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (int i = 0; i < count; ++i) buffers.push_back(Zeros(bytes));
    return buffers;
  }
  static std::vector<Buffer*> Slots(const std::vector<std::unique_ptr<Buffer>>& buffers,
                                    size_t count) {
    std::vector<Buffer*> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back(buffers[i].get());
    return slots;
  }
  // One number of a buffer.
  static uint32_t Read(Device& device, const Buffer& buffer, int64_t offset = 0) {
    uint32_t value = 0;
    const absl::Status status =
        device.CopyToHost(buffer, offset, {reinterpret_cast<char*>(&value), sizeof(value)});
    EXPECT_TRUE(status.ok()) << status;
    return value;
  }
  uint32_t Read(const Buffer& buffer, int64_t offset = 0) { return Read(device(), buffer, offset); }

  std::unique_ptr<DynamicLibrary> library_;
  Control* control_ = nullptr;
  int64_t mistakes_ = 0;
  std::string why_none_;
  std::vector<std::unique_ptr<Device>> devices_;

 private:
  const char* (*find_message_)() = nullptr;
};

}  // namespace kiln::drivers::testing

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_STAND_IN_FIXTURE_H_
