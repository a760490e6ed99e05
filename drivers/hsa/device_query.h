// What the HSA runtime tells of its agents, and which of them Kiln can use.
#ifndef KILN_DRIVERS_HSA_DEVICE_QUERY_H_
#define KILN_DRIVERS_HSA_DEVICE_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/hsa/library.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::hsa {

struct DeviceFacts {
  hsa_agent_t agent = {};
  hsa_agent_t host = {};                 // the processor whose memory both reach
  hsa_amd_memory_pool_t memory = {};     // coarse-grained, the device's own
  hsa_amd_memory_pool_t arguments = {};  // fine-grained, the host's, for kernels' arguments
  uint32_t queue_packets_max = 0;
  // The vendor's name and the UUID, as rocm-smi prints it: "AMD Instinct MI210 (GPU-1b2c…)".
  std::string model;
  Target target;
  int64_t memory_bytes = 0;
  // FAILED_PRECONDITION: why Kiln cannot use it.
  absl::Status usable;
};

// Of the name of an instruction set, "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-": the processor,
// and its features as LLVM writes them, "+sramecc,-xnack". Both empty if it is no such name.
struct IsaName {
  std::string processor;
  std::string features;
};
IsaName ParseIsaName(const std::string& name);

// The GPUs among the agents, in HSA's order. NOT_FOUND: there is none.
absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& hsa);

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_DEVICE_QUERY_H_
