// The devices of all installed OpenCL platforms.
#ifndef KILN_DRIVERS_OPENCL_DRIVER_H_
#define KILN_DRIVERS_OPENCL_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drivers/common/queued_device/vendor_driver.h"

namespace kiln::drivers::opencl {

// Whether launches with constant arguments are recorded as command buffers (cl_khr_command_buffer)
// on devices that support them. They help where each call costs a round trip to the device. PoCL
// and Intel's runtime run a processor's launches one by one anyway, more slowly with command
// buffers, and Intel's never releases the memory that it allocates for each launch.
enum class CommandBuffers { kWhereTheyHelp, kAlways, kNever };

struct OpenClOptions {
  // Also offer devices that use the host's memory: CPUs, whose cores Kiln's own CPU device already
  // uses, and integrated GPUs. The devices' memory limits then add up to more than there is.
  bool sharing_host_memory = false;
  // 0: seven eighths of a device's own memory, half of one that it shares with the host.
  int64_t memory_limit_bytes_per_device = 0;
  // Offer only devices of platforms whose name contains this; "": all.
  std::string platform = {};
  CommandBuffers command_buffers = CommandBuffers::kWhereTheyHelp;  // not on processors
  // Called from any thread, with the device's name and the reason, if recording fails on a device
  // that supports it. From then on its lists are enqueued command by command.
  std::function<void(const std::string& device, const absl::Status& why)>
      on_broken_command_buffers = {};
  std::string library = "libOpenCL.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

class OpenClDriver : public VendorDriver {
 public:
  explicit OpenClDriver(OpenClOptions options);
  std::string name() const override { return "opencl"; }

 private:
  // CPUs come last.
  absl::StatusOr<std::vector<Openable>> Find() override;
  absl::StatusOr<std::unique_ptr<KernelBuilder>> OpenBuilder() override;

  const OpenClOptions options_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DRIVER_H_
