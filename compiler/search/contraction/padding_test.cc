#include "compiler/search/contraction/padding.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/heuristics/heuristic.h"

namespace kiln::search {
namespace {

// A convolution of images of 4x4 by windows of 3x3, with a border of zeros.
constexpr char kSmallImages[] =
    "buffer b0 float32[524288] read\n"
    "buffer b1 float32[2359296] read\n"
    "buffer b2 float32[524288] write\n"
    "stage r0:64 r1:512 r2:4 r3:4 reduce r4:512 r5:3 r6:3\n"
    "  b2[r0*8192 + r1*16 + r2*4 + r3] = sum(b0[r0*8192 + r4*16 + r2*4 + r5*4 + r3 + r6 + -5 if "
    "and(and(and(cmplt(0, r2 + r5), cmplt(0, r3 + r6)), cmplt(r2 + r5, 5)), cmplt(r3 + r6, 5))]"
    "*b1[r1*4608 + r4*9 + r5*3 + r6])\n";

class PaddingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto kernel = kernel::ParseKernel(kSmallImages, context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *std::move(kernel);
  }
  const kernel::Stage& stage() const { return kernel_.stages[0]; }
  const ir::Node* Range(size_t number) const {
    const size_t parallel = stage().ranges.size();
    return number < parallel ? stage().ranges[number] : stage().reduce_ranges[number - parallel];
  }

  ir::Context context_;
  kernel::Kernel kernel_;
};

TEST_F(PaddingTest, CountsTheTermsThatAreComputed) {
  const Padding padding(stage());
  // 10 of the 12 pairs of a row and a tap are inside the image.
  const double rows = 10.0 / 12;
  EXPECT_DOUBLE_EQ(padding.ComputedShare({Range(0), Range(1)}), rows * rows);
  EXPECT_DOUBLE_EQ(padding.ComputedShare({Range(3)}), rows);
  EXPECT_DOUBLE_EQ(padding.ComputedShare({Range(2), Range(3)}), 1);
}

TEST_F(PaddingTest, KnowsWhichLoopsAreTested) {
  const Padding padding(stage());
  EXPECT_TRUE(padding.IsTested(Range(5), {}));
  EXPECT_TRUE(padding.IsTested(Range(6), {}));
  EXPECT_FALSE(padding.IsTested(Range(4), {}));
  EXPECT_FALSE(padding.IsTested(Range(6), {Range(3)}));
}

TEST_F(PaddingTest, WhatIsTestedIsReadInPlace) {
  const Padding padding(stage());
  const ir::Node* sum = stage().stores[0].value;
  const ir::Node* image = sum->operand(0)->operand(0);
  const ir::Node* weights = sum->operand(0)->operand(1);
  EXPECT_TRUE(padding.ReadsInPlace(image, {Range(0)}));
  EXPECT_FALSE(padding.ReadsInPlace(image, {Range(2)}));
  EXPECT_TRUE(padding.ReadsInPlace(weights, {Range(2)}));
}

TEST_F(PaddingTest, SmallImagesSkipIt) {
  for (const int vector_bytes : {16, 32, 64}) {
    drivers::Target target;
    target.architecture = "x86-64";
    target.limits.vector_bytes = vector_bytes;
    target.limits.vector_registers = vector_bytes == 64 ? 32 : 16;
    target.limits.private_cache_bytes = 1 << 20;
    EXPECT_TRUE(absl::StrContains(schedule::Print(Choose(kernel_, target)), "skip 0"))
        << vector_bytes;
  }
}

}  // namespace
}  // namespace kiln::search
