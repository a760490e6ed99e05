// Kernels with schedules that assign tasks to blocks of threads.
#ifndef KILN_TESTS_NUMERICS_CASES_THREAD_CASES_H_
#define KILN_TESTS_NUMERICS_CASES_THREAD_CASES_H_

#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

struct ThreadCase {
  std::string name;
  std::string kernel;  // as text for kernel::ParseKernel
  std::vector<std::string> schedules;
  double tolerance = 0;  // sums are added up in another order
  // The number of barriers in the schedules' loops, both with sums through memory and with
  // neighbours that exchange values directly; and how many of them could be omitted.
  int needed_barriers = 0;
  int spare_barriers = 0;
};
const std::vector<ThreadCase>& ThreadCases();
// More cases, for constructs that only emitters of machine code treat differently.
const std::vector<ThreadCase>& EmitterCases();

// Returns values for the global buffers of a kernel, the same at each call.
std::vector<ops::HostTensor> GlobalsOf(const kernel::Kernel& kernel);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASES_THREAD_CASES_H_
