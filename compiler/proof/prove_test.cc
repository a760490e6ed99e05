// The proof accepts what schedules do to kernels.
#include "compiler/proof/prove.h"

#include <gtest/gtest.h>

#include "compiler/codegen/sample_kernels.h"
#include "compiler/schedule/apply.h"
#include "compiler/search/heuristic.h"

namespace kiln::proof {
namespace {

drivers::Target TargetOf(int vector_bytes) {
  drivers::Target target;
  target.architecture = "x86-64";
  target.vector_bytes = vector_bytes;
  target.vector_registers = vector_bytes == 64 ? 32 : 16;
  target.compute_units = 2;
  return target;
}

absl::Status ProveChosen(const kernel::Kernel& kernel, const drivers::Target& target) {
  const schedule::Schedule schedule = search::Choose(kernel, target);
  auto program = schedule::Apply(kernel, schedule);
  return program.ok() ? Prove(kernel, schedule, *program) : program.status();
}

// The rows of the padded input, 2 * h + i, are copied with h in the loops around the copy: what is
// left of the sum steps by 2 and has no axis of step 1.
TEST(Prove, CopiesOfStridedWindows) {
  for (const int vector_bytes : {16, 32, 64}) {
    for (const int64_t stride : {1, 2, 3}) {
      ir::Context context;
      const codegen::ConvolutionShape shape = {128, 1, 32, 28, 4, 1, stride};
      EXPECT_EQ(ProveChosen(codegen::ConvolutionWeightGradientKernel(context, shape),
                            TargetOf(vector_bytes)),
                absl::OkStatus())
          << vector_bytes << " bytes, stride " << stride;
    }
  }
}

}  // namespace
}  // namespace kiln::proof
