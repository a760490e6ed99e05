// Kernels with schedules that give tasks to blocks of threads.
#ifndef KILN_TESTS_NUMERICS_THREAD_CASES_H_
#define KILN_TESTS_NUMERICS_THREAD_CASES_H_

#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

struct ThreadCase {
  std::string name;
  std::string kernel;  // kernel::ParseKernel reads it
  std::vector<std::string> schedules;
  double tolerance = 0;  // sums are added up in another order
  // How many barriers the schedules' loops have, with sums through memory and with neighbours that
  // hand each other values; and how many of them could be left out.
  int needed_barriers = 0;
  int spare_barriers = 0;
};
const std::vector<ThreadCase>& ThreadCases();
// More of them, with what only emitters of machine code do differently.
const std::vector<ThreadCase>& EmitterCases();

// Values for the global buffers of a kernel, the same at each call.
std::vector<ops::HostTensor> GlobalsOf(const kernel::Kernel& kernel);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_THREAD_CASES_H_
