// The devices of all OpenCL platforms that are installed.
#ifndef KILN_DRIVERS_OPENCL_DRIVER_H_
#define KILN_DRIVERS_OPENCL_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/interface/clock.h"
#include "drivers/interface/driver.h"

namespace kiln::drivers::opencl {

class ProgramBuilder;

// Whether launches that stay the same are recorded as command buffers (cl_khr_command_buffer) where
// a device can. They help where a call costs a way to the device: PoCL and Intel's runtime run a
// processor's launches one by one all the same, more slowly, and Intel's never gives the memory
// back that it takes for each.
enum class CommandBuffers { kWhereTheyHelp, kAlways, kNever };

struct OpenClOptions {
  // Offer what uses the host's memory, too: CPUs, whose cores Kiln's own CPU device has already,
  // and integrated GPUs. The memory that devices may take adds up to more than there is.
  bool sharing_host_memory = false;
  // 0: seven eighths of a device's own memory, half of one that it shares with the host.
  int64_t memory_limit_bytes_per_device = 0;
  // Offer only devices of platforms whose name has this in it, "" being all.
  std::string platform = {};
  CommandBuffers command_buffers = CommandBuffers::kWhereTheyHelp;  // not on processors
  // Called, from any thread, when recording fails on a device that says it can: with its name and
  // why. Its lists are enqueued command by command from then on.
  std::function<void(const std::string& device, const absl::Status& why)>
      on_broken_command_buffers = {};
  std::string library = "libOpenCL.so.1";
  SteadyClock now = std::chrono::steady_clock::now;
};

// Loads code of vendors into the process, with all that this code may do there.
class OpenClDriver : public Driver {
 public:
  explicit OpenClDriver(OpenClOptions options);
  ~OpenClDriver() override;

  std::string name() const override { return "opencl"; }
  // A device's number is its place among all of the machine's, CPUs last, whether they are offered
  // or not.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Enumerate(std::string* why_none) override;
  absl::StatusOr<KernelImage> Finish(const KernelImage& image, const Finisher& finisher) override;

 private:
  const OpenClOptions options_;
  std::unique_ptr<ProgramBuilder> builder_;  // once something is finished
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_DRIVER_H_
