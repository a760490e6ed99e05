// Tests that the proof accepts the results of schedules.
#include "compiler/proof/prove.h"

#include <gtest/gtest.h>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/heuristics/heuristic.h"

namespace kiln::proof {
namespace {

std::vector<drivers::Target> Targets() {
  std::vector<drivers::Target> targets;
  for (const int vector_bytes : {16, 32, 64}) {
    for (const int64_t cache_kib : {64, 256, 512, 1024, 2048}) {
      for (const int units : {1, 2, 8}) {
        drivers::Target& target = targets.emplace_back();
        target.architecture = "x86-64";
        target.limits.vector_bytes = vector_bytes;
        target.limits.vector_registers = vector_bytes == 64 ? 32 : 16;
        target.limits.private_cache_bytes = cache_kib << 10;
        target.limits.compute_units = units;
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

// The rows of the padded input, 2 * h + i, are copied with h in the loops around the copy: the rest
// of the sum has step 2 and no axis of step 1.
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

// The index is in bounds because of the range of its dtype.
TEST(Prove, TablesThatAreAsLongAsTheDTypeOfTheirIndices) {
  constexpr char kTable[] =
      "buffer b0 float32[256] read\n"
      "buffer b1 uint8[1000] read\n"
      "buffer b2 int32[1000] read\n"
      "buffer b3 float32[1000] write\n"
      "stage r0:1000\n"
      "  b3[r0] = b0[int64(b1[r0])] + b0[int64(b1[r0]*b1[r0])] + b0[int64(uint8(b2[r0]))]\n";
  ir::Context context;
  const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(kTable, context);
  ASSERT_EQ(kernel.status(), absl::OkStatus());
  for (const drivers::Target& target : Targets()) {
    EXPECT_EQ(ProveChosen(*kernel, target), absl::OkStatus()) << target.CacheKey();
  }
}

// An element that no sampled point has written must still have the local's dtype.
TEST(Prove, LocalsThatAreIndices) {
  constexpr char kLocals[] =
      "buffer b0 float32[256] read\n"
      "buffer b1 uint8[3000] read\n"
      "buffer b2 float32[3000] write\n"
      "buffer b3 uint8[1000] local\n"
      "grid r0:3\n"
      "stage r1:1000\n"
      "  b3[r1] = b1[r0*1000 + r1]\n"
      "stage r2:1000\n"
      "  b2[r0*1000 + r2] = b0[int64(b3[999 - r2])]\n";
  ir::Context context;
  const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(kLocals, context);
  ASSERT_EQ(kernel.status(), absl::OkStatus());
  for (const drivers::Target& target : Targets()) {
    EXPECT_EQ(ProveChosen(*kernel, target), absl::OkStatus()) << target.CacheKey();
  }
}

}  // namespace
}  // namespace kiln::proof
