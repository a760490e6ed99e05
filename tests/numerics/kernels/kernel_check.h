// Compiles single kernels, runs them and compares the results with the naive interpreter's.
#ifndef KILN_TESTS_NUMERICS_KERNELS_KERNEL_CHECK_H_
#define KILN_TESTS_NUMERICS_KERNELS_KERNEL_CHECK_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"
#include "tests/numerics/target.h"

namespace kiln::codegen {

using numerics::HostTarget;

// A kernel's global buffers before it runs, and the interpreter's results.
struct InterpretedKernel {
  std::vector<ops::HostTensor> before;
  std::vector<ops::HostTensor> after;
};
// `specials`: inputs include infinities, NaN, zeros of both signs and integers of all sizes.
absl::StatusOr<InterpretedKernel> InterpretKernel(const kernel::Kernel& kernel,
                                                  bool specials = false);

// Returns OK if the image gives the interpreter's results: floats within tolerance * (1 +
// |expected|), NaN for NaN, all else exactly. Each task runs with guard pages around its buffers
// and with separate scratch.
absl::Status CompareWithInterpreter(const absl::StatusOr<InterpretedKernel>& interpreted,
                                    const absl::StatusOr<drivers::KernelImage>& image,
                                    double tolerance);
// Fails the test unless that holds for the kernel compiled with the schedule. `what` names the
// kernel.
void ExpectMatches(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const drivers::Target& target,
                   const absl::StatusOr<InterpretedKernel>& interpreted, double tolerance,
                   const std::string& what);
// The same without a schedule, and with the schedule that the heuristic chooses for this machine.
void ExpectAllMatch(const kernel::Kernel& kernel, double tolerance, const std::string& what,
                    bool specials = false);

class KernelsTest : public testing::Test {
 protected:
  // Compiles the kernel and directives, given as text, for this machine and checks the results.
  void ExpectRight(const std::string& kernel, const std::string& directives,
                   double tolerance = 2e-4);

  ir::Context context_;
};

}  // namespace kiln::codegen

#endif  // KILN_TESTS_NUMERICS_KERNELS_KERNEL_CHECK_H_
