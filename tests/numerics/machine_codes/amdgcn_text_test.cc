// Checks the instructions of code objects for AMD's GPUs.
#include <string>

#include "absl/strings/match.h"
#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/kernel/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

using ::testing::HasSubstr;

constexpr char kPlain[] =
    "buffer b0 float32[1024] read\nbuffer b1 float32[1024] write\n"
    "stage r0:1024\n  b1[r0] = b0[r0]*b0[r0] + b0[r0]\n";

std::string TextOf(const char* text, const drivers::Target& target) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(text, context);
  if (!kernel.ok()) return std::string(kernel.status().message());
  const auto image = CompileForTarget(*kernel, ChooseForTarget(*kernel, target), target);
  if (!image.ok()) return std::string(image.status().message());
  return *codegen::DisassembleCodeObject(image->code, target);
}

TEST(AmdgcnTextTest, EachOperationRoundsByItself) {
  for (const drivers::Target& target : Amdgcn().generations) {
    const std::string text = TextOf(kPlain, target);
    EXPECT_THAT(text, HasSubstr("v_mul_f32"));
    EXPECT_THAT(text, HasSubstr("v_add_f32"));
    EXPECT_FALSE(absl::StrContains(text, "fma") || absl::StrContains(text, "mac")) << text;
  }
}

TEST(AmdgcnTextTest, NeighboursAreReadAtOnce) {
  drivers::Target target = AmdgcnTarget();
  target.limits.compute_units = 1;
  target.limits.threads_per_unit = 32;
  EXPECT_THAT(TextOf(kPlain, target), HasSubstr("global_load_b128"));
}

TEST(AmdgcnTextTest, ProcessorsAndSubgroupsThatAreNotAreNamed) {
  EXPECT_THAT(TextOf(kPlain, AmdgcnTarget("gfx1", 32)),
              HasSubstr("unknown processor for code objects \"gfx1\""));
  EXPECT_THAT(TextOf(kPlain, AmdgcnTarget("gfx90a", 32)),
              HasSubstr("gfx90a has no subgroups of 32 threads"));
}

// Code objects for GPUs contain nothing of it.
TEST(AmdgcnTextTest, TwinsStandBehindCodeObjectsOfTheStandInsDevicesOnly) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kPlain, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  drivers::Target target = AmdgcnTarget();
  const auto with = CompileForTarget(*kernel, {}, target);
  target.features = "";
  const auto without = CompileForTarget(*kernel, {}, target);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_TRUE(absl::StartsWith(with->code, without->code));
  EXPECT_GT(with->code.size(), without->code.size());
}

}  // namespace
}  // namespace kiln::numerics
