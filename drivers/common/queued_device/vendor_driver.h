// A driver whose devices are queued devices: finds them in the vendor's library and opens those
// that can be used.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DRIVER_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DRIVER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "drivers/common/queued_device/kernel_builder.h"
#include "drivers/common/queued_device/vendor_device.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"
#include "drivers/interface/target.h"

namespace kiln::drivers {

// The facts that a driver learns about a device without opening it.
struct FoundDevice {
  std::string model;  // the vendor's name, with what distinguishes it from its like
  Target target;
  int64_t memory_bytes = 0;
  bool shares_host_memory = false;
  std::string pci_address = {};  // as DeviceInfo::pci_address
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// "0000:3b:00.0".
std::string PciAddress(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function);

// FAILED_PRECONDITION names the first that does not hold: "has no compiler".
struct Requirement {
  bool holds;
  absl::string_view otherwise;
};
absl::Status CheckRequirements(std::initializer_list<Requirement> requirements);

// Returns the finishers that a builder of these devices' kernels takes.
template <typename Facts>
std::vector<Finisher> FinishersOf(const std::vector<Facts>& devices) {
  std::vector<Finisher> finishers;
  for (const FoundDevice& device : devices) finishers.push_back(device.target.finisher);
  return finishers;
}

// Loads the vendor's code into the process; a crash in it is a crash of the process.
class VendorDriver : public Driver {
 public:
  // A device's number is its position among all devices that the library lists, offered or not.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) final;
  absl::StatusOr<KernelImage> Finish(const KernelImage& image, const Finisher& finisher) final;

 protected:
  struct Options {
    std::string vendor;  // for messages: "CUDA"
    // 0: seven eighths of a device's own memory, half of one that it shares with the host.
    int64_t memory_limit_bytes_per_device = 0;
    // Also offer devices that use the host's memory.
    bool sharing_host_memory = false;
    SteadyClock now;
  };
  explicit VendorDriver(Options options) : shared_options_(std::move(options)) {}

  struct Openable : FoundDevice {
    std::function<absl::StatusOr<std::shared_ptr<VendorDevice>>()> open;
  };

 private:
  // Opens the library and lists its devices. An error is one sentence: why there are none.
  virtual absl::StatusOr<std::vector<Openable>> Find() = 0;
  virtual absl::StatusOr<std::unique_ptr<KernelBuilder>> OpenBuilder();

  absl::StatusOr<std::unique_ptr<Device>> Open(const Openable& found,
                                               const std::string& name) const;
  int64_t MemoryOf(const FoundDevice& found) const;

  const Options shared_options_;
  std::unique_ptr<KernelBuilder> builder_;  // created by the first Finish
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_VENDOR_DRIVER_H_
