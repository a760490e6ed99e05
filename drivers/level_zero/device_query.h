// What Level Zero tells of its devices, and which of them Kiln can use.
#ifndef KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_
#define KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/interface/target.h"
#include "drivers/level_zero/library.h"

namespace kiln::drivers::level_zero {

// A queue of a device: the group that it is of, and its number there.
struct QueuePlace {
  uint32_t ordinal = 0;
  uint32_t index = 0;
};

struct DeviceFacts {
  ze_driver_handle_t driver = nullptr;
  ze_device_handle_t device = nullptr;
  std::string model;  // the vendor's name and the UUID
  Target target;
  int64_t memory_bytes = 0;
  int64_t allocation_bytes_max = 0;
  bool shares_host_memory = false;
  int64_t grid_max = 0;       // blocks of a launch
  std::string build_options;  // of modules
  // Of lists, and of copies between host and device: a queue of its own, where there is one.
  QueuePlace list_queue;
  QueuePlace copy_queue;
  // Of kernels' times: seconds of a cycle, and the bits that count.
  double cycle_seconds = 0;
  uint64_t cycle_mask = ~uint64_t{0};
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// All GPUs, driver by driver. NOT_FOUND: there is none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& ze);

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_DEVICE_QUERY_H_
