// What this machine is: its processor as the compiler must know it, cores and memory. No LLVM.
#ifndef KILN_DRIVERS_CPU_HOST_H_
#define KILN_DRIVERS_CPU_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cpu {

// `features`: as instructions.h has them, and its errors; empty: all that the processor has.
// compute_units is `threads`.
absl::StatusOr<Target> DetectTarget(int threads, const std::string& features = "");

// The processor's brand, "AMD EPYC 9B45" for example.
std::string ProcessorModel();

// The cores in this process's affinity mask.
int AvailableCores();

// The smaller of physical memory and the limits of this process's control groups. The arguments are
// for tests.
int64_t AvailableMemory(const std::string& cgroup_root = "/sys/fs/cgroup",
                        const std::string& own_cgroup_file = "/proc/self/cgroup");

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_HOST_H_
