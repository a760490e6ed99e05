// Selects which of this machine's instructions the tests' programs use: all of them, or fewer, so
// that every width is tested on one machine. Test programs with numerics/kernels/main.cc, and
// random_graphs, accept
//   --cpu_features=avx2,-fma
// as kilnd does; drivers/cpu/instructions.h lists the words.
#ifndef KILN_TESTS_NUMERICS_TARGET_H_
#define KILN_TESTS_NUMERICS_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// Requires: called at most once, before the first use. Returns the errors of
// drivers::cpu::DetectTarget; then nothing was set.
absl::Status SetCpuFeatures(const std::string& words);
// Empty: all features of the processor.
const std::string& CpuFeatures();

// Returns this machine with these features and two threads.
const drivers::Target& HostTarget();

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_TARGET_H_
