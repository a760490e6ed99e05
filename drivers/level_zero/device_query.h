// Queries Level Zero for its devices and decides which of them Kiln can use.
#ifndef KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_
#define KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_driver.h"
#include "drivers/level_zero/library.h"

namespace kiln::drivers::level_zero {

// A queue of a device: its group, and its number in the group.
struct QueuePlace {
  uint32_t ordinal = 0;
  uint32_t index = 0;
};

struct DeviceFacts : FoundDevice {
  ze_driver_handle_t driver = nullptr;
  ze_device_handle_t device = nullptr;
  int64_t allocation_bytes_max = 0;
  int64_t grid_max = 0;       // blocks of a launch
  std::string build_options;  // of modules
  // The queues for lists and for host-device copies; different ones if possible.
  QueuePlace list_queue;
  QueuePlace copy_queue;
  // For kernels' times: the seconds of a cycle, and the valid bits of a timestamp.
  double cycle_seconds = 0;
  uint64_t cycle_mask = ~uint64_t{0};
};

// Returns all GPUs, driver by driver. NOT_FOUND: there are none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& ze);

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_
