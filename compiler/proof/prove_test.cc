// The proof accepts what schedules do to kernels.
#include "compiler/proof/prove.h"

#include <gtest/gtest.h>

#include "compiler/codegen/sample_kernels.h"
#include "compiler/schedule/apply.h"
#include "compiler/search/heuristic.h"

namespace kiln::proof {
namespace {

std::vector<drivers::Target> Targets() {
  std::vector<drivers::Target> targets;
  for (const int vector_bytes : {16, 32, 64}) {
    for (const int64_t cache_kib : {64, 256, 512, 1024, 2048}) {
      for (const int units : {1, 2, 8}) {
        drivers::Target& target = targets.emplace_back();
        target.architecture = "x86-64";
        target.vector_bytes = vector_bytes;
        target.vector_registers = vector_bytes == 64 ? 32 : 16;
        target.private_cache_bytes = cache_kib << 10;
        target.compute_units = units;
      }
    }
  }
  return targets;
}

absl::Status ProveChosen(const kernel::Kernel& kernel, const drivers::Target& target) {
  const schedule::Schedule schedule = search::Choose(kernel, target);
  auto program = schedule::Apply(kernel, schedule);
  return program.ok() ? Prove(kernel, schedule, *program) : program.status();
}

// The rows of the padded input, 2 * h + i, are copied with h in the loops around the copy: what is
// left of the sum steps by 2 and has no axis of step 1.
TEST(Prove, CopiesOfStridedWindows) {
  const codegen::ConvolutionShape shapes[] = {
      {128, 1, 32, 28, 4, 1, 2},   {128, 3, 64, 28, 4, 1, 2}, {256, 32, 64, 16, 3, 1, 2},
      {128, 64, 128, 32, 3, 1, 2}, {32, 3, 16, 96, 7, 3, 2},  {9, 4, 24, 31, 5, 2, 3}};
  for (const drivers::Target& target : Targets()) {
    for (const codegen::ConvolutionShape& shape : shapes) {
      ir::Context context;
      EXPECT_EQ(ProveChosen(codegen::ConvolutionWeightGradientKernel(context, shape), target),
                absl::OkStatus())
          << target.CacheKey() << ", " << shape.in_channels << " to " << shape.out_channels;
    }
  }
}

}  // namespace
}  // namespace kiln::proof
