#include "compiler/kernel/merge_ranges.h"

#include <string>

#include "gtest/gtest.h"

namespace kiln::kernel {
namespace {

std::string Merged(const std::string& text) {
  ir::Context context;
  absl::StatusOr<Kernel> kernel = ParseKernel(text, context);
  if (!kernel.ok()) return kernel.status().ToString();
  MergeRanges(&*kernel, context);
  return Print(*kernel);
}

constexpr char kTwoBuffers[] = "buffer b0 float32[24] read\nbuffer b1 float32[24] write\n";

TEST(MergeRanges, OneLoopWhereMemoryIsOneRow) {
  EXPECT_EQ(
      Merged(std::string(kTwoBuffers) + "stage r0:2 r1:3 r2:4\n"
                                        "  b1[r0*12 + r1*4 + r2] = neg(b0[r0*12 + r1*4 + r2])\n"),
      std::string(kTwoBuffers) + "stage r0:24\n  b1[r0] = neg(b0[r0])\n");
}

TEST(MergeRanges, TransposedLoopsStayApart) {
  const std::string text = std::string(kTwoBuffers) +
                           "stage r0:4 r1:6\n"
                           "  b1[r0*6 + r1] = neg(b0[r0 + r1*4])\n";
  EXPECT_EQ(Merged(text), std::string(kTwoBuffers) +
                              "stage r0:4 r1:6\n"
                              "  b1[r0*6 + r1] = neg(b0[r1*4 + r0])\n");
}

TEST(MergeRanges, ReducedLoopsMerge) {
  EXPECT_EQ(Merged("buffer b0 float32[24] read\nbuffer b1 float32[2] write\n"
                   "stage r0:2 reduce r1:3 r2:4\n"
                   "  b1[r0] = sum(b0[r0*12 + r1*4 + r2])\n"),
            "buffer b0 float32[24] read\nbuffer b1 float32[2] write\n"
            "stage r0:2 reduce r1:12\n"
            "  b1[r0] = sum(b0[r0*12 + r1])\n");
}

TEST(MergeRanges, ConditionsKeepLoopsApart) {
  const std::string text = std::string(kTwoBuffers) +
                           "stage r0:4 r1:6\n"
                           "  b1[r0*6 + r1] = b0[r0*6 + r1 if cmplt(r1, 5)]\n";
  EXPECT_EQ(Merged(text), text);
}

}  // namespace
}  // namespace kiln::kernel
