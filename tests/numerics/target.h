// Which of this machine's instructions the tests' programs use: all of them, or less, so that every
// width is tested on one machine. Test programs with numerics/main.cc and random_graphs take
//   --cpu_features=avx2,-fma
// as kilnd does; drivers/cpu/instructions.h has the words.
#ifndef KILN_TESTS_NUMERICS_TARGET_H_
#define KILN_TESTS_NUMERICS_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// Once, before the first use. The errors of drivers::cpu::DetectTarget: nothing was set.
absl::Status SetCpuFeatures(const std::string& words);
// Empty: all that the processor has.
const std::string& CpuFeatures();

// This machine with these features and two threads.
const drivers::Target& HostTarget();

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_TARGET_H_
