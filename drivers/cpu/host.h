// Properties of this machine: its processor as a Target, cores and memory. Independent of LLVM.
#ifndef KILN_DRIVERS_CPU_HOST_H_
#define KILN_DRIVERS_CPU_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/cpu/control_groups.h"
#include "drivers/interface/target.h"

namespace kiln::drivers::cpu {

// `features`: syntax and errors as in instructions.h; empty: all features of the processor. Sets
// limits.compute_units to `threads`.
absl::StatusOr<Target> DetectTarget(int threads, const std::string& features = "");

// The processor's brand, "AMD EPYC 9B45" for example.
std::string ProcessorModel();

// The number of threads that this process can keep running: the cores in its affinity mask, or
// fewer if the control groups' limit, rounded to a whole number, is lower. At least 1.
int AvailableCores(const ControlGroups& groups = ControlGroups());

// The smaller of physical memory and the control groups' limit.
int64_t AvailableMemory(const ControlGroups& groups = ControlGroups());

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_HOST_H_
