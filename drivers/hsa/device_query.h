// Queries the HSA runtime for its agents and decides which of them Kiln can use.
#ifndef KILN_DRIVERS_HSA_DEVICE_QUERY_H_
#define KILN_DRIVERS_HSA_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/common/queued_device/vendor_driver.h"
#include "drivers/hsa/library.h"

namespace kiln::drivers::hsa {

struct DeviceFacts : FoundDevice {
  hsa_agent_t agent = {};
  hsa_agent_t host = {};                 // the processor whose memory both access
  hsa_amd_memory_pool_t memory = {};     // coarse-grained, the device's own
  hsa_amd_memory_pool_t arguments = {};  // fine-grained, the host's, for kernels' arguments
  uint32_t queue_packets_max = 0;
};

// The processor and the features, in LLVM's syntax ("+sramecc,-xnack"), of an instruction set's
// name such as "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-". Both are empty if the name has another
// form.
struct IsaName {
  std::string processor;
  std::string features;
};
IsaName ParseIsaName(const std::string& name);

// Returns the GPUs among the agents, in HSA's order. NOT_FOUND: there are none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& hsa);

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DEVICE_QUERY_H_
