// The loops that Apply builds for long sums of floats, and for everything that stays as it is.
// tests/numerics/kernels/long_sums_test.cc runs them.
#include "compiler/schedule/blocks_of_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/kernel/text.h"
#include "compiler/schedule/apply/apply.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string LoopsOf(const std::string& kernel, const char* schedule) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel, context);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const auto program = Apply(*parsed, *Parse(schedule));
  return program.ok() ? Print(*program) : std::string(program.status().message());
}

std::string Reduction(const char* dtype, const char* kind, int64_t terms) {
  return absl::StrCat("buffer b0 ", dtype, "[", terms, "] read\nbuffer b1 ", dtype,
                      "[1] write\nstage reduce r0:", terms, "\n  b1[0] = ", kind, "(b0[r0])\n");
}

// out[i, j] = Σ in0[i, k] * in1[k, j], 4 by K by 6.
std::string Product(int64_t terms) {
  return absl::StrCat("buffer b0 float32[", 4 * terms, "] read\nbuffer b1 float32[", 6 * terms,
                      "] read\nbuffer b2 float32[24] write\nstage r0:4 r1:6 reduce r2:", terms,
                      "\n  b2[r0*6 + r1] = sum(b0[r0*", terms, " + r2]*b1[r2*6 + r1])\n");
}

TEST(BlocksOfSums, AShortSumIsOneChain) {
  EXPECT_EQ(LoopsOf(Reduction("float32", "sum", 256), ""),
            "global in0: float32[256]\n"
            "global out1: float32[1]\n"
            "register sum2: float32[1]\n"
            "tasks\n"
            "  sum2[0] = 0\n"
            "  for r1 < 256\n"
            "    sum2[0] = (sum2[0] + in0[r1])\n"
            "  out1[0] = sum2[0]\n");
}

TEST(BlocksOfSums, BlocksOfALongSumAreAddedUp) {
  EXPECT_EQ(LoopsOf(Reduction("float32", "sum", 1000), ""),
            "global in0: float32[1000]\n"
            "global out1: float32[1]\n"
            "register sum2: float32[1]\n"
            "register block1_3: float32[1]\n"
            "tasks\n"
            "  sum2[0] = 0\n"
            "  for r1 < 20\n"
            "    block1_3[0] = 0\n"
            "    for r2 < 50\n"
            "      block1_3[0] = (block1_3[0] + in0[(r1*50 + r2)])\n"
            "    sum2[0] = (sum2[0] + block1_3[0])\n"
            "  out1[0] = sum2[0]\n");
}

TEST(BlocksOfSums, AVeryLongSumHasSeveralLevels) {
  const std::string loops = LoopsOf(Reduction("float64", "sum", int64_t{1} << 26), "");
  for (const char* line : {"  for r1 < 256\n    block1_3[0] = 0\n    for r2 < 64\n"
                           "      block2_4[0] = 0\n      for r3 < 64\n        block3_5[0] = 0\n"
                           "        for r4 < 64\n",
                           "        block2_4[0] = (block2_4[0] + block3_5[0])\n"
                           "      block1_3[0] = (block1_3[0] + block2_4[0])\n"
                           "    sum2[0] = (sum2[0] + block1_3[0])\n"}) {
    EXPECT_THAT(loops, HasSubstr(line));
  }
}

TEST(BlocksOfSums, OnlySumsOfFloatsHaveBlocks) {
  const int64_t terms = int64_t{1} << 26;
  for (const std::string& kernel :
       {Reduction("int64", "sum", terms), Reduction("float32", "max", terms),
        Reduction("float32", "prod", terms)}) {
    const std::string loops = LoopsOf(kernel, "");
    EXPECT_THAT(loops, HasSubstr(absl::StrCat("for r1 < ", terms))) << kernel;
    EXPECT_THAT(loops, Not(HasSubstr("block"))) << kernel;
  }
}

// The blocks are whole vectors, and the lanes that are too many are masked once, after the last
// block.
TEST(BlocksOfSums, LanesShareBlocks) {
  const std::string loops =
      LoopsOf(Reduction("float32", "sum", 100'003), "split 0 16\nbind 2 vector");
  for (const char* line :
       {"register sum2: float32[1] x 16\n", "register block1_3: float32[1] x 16\n",
        "in0[(r2*752 + (r4*16 + r5))]", "if cmpeq(r2, 132)\n"}) {
    EXPECT_THAT(loops, HasSubstr(line));
  }
}

// A tile that is carried through registers is not copied there from memory: it begins at zero and
// is added.
TEST(BlocksOfSums, ATileInMemoryGetsBlocksForItsCopies) {
  const char* kBlocks = "split 2 100\norder 0 3 0 1 4";
  const std::string shorter = LoopsOf(Product(200), kBlocks);
  EXPECT_THAT(shorter, HasSubstr("sum4[0] = sum3["));
  EXPECT_THAT(shorter, Not(HasSubstr("block")));
  const std::string longer = LoopsOf(Product(2000), kBlocks);
  EXPECT_THAT(longer, HasSubstr("for r5 < 20\n"));
  EXPECT_THAT(longer, HasSubstr("block1_4[0] = 0\n"));
  EXPECT_THAT(longer, Not(HasSubstr("= sum3[(r6*6 + r7)]\n")));
}

// A loop that operands are staged in is cut outside of them.
TEST(BlocksOfSums, OperandsAreStagedInsideBlocks) {
  const std::string loops = LoopsOf(Product(100'000),
                                    "split 2 8\nsplit 1 8\nbind 6 vector\norder 0 0 5 3 4 6\n"
                                    "stage 0 1 3 8 2 1\n");
  EXPECT_THAT(loops, HasSubstr("staged"));
  EXPECT_THAT(loops, HasSubstr("block1_"));
}

// A sum that ends where a number says has no blocks after that.
TEST(BlocksOfSums, BlocksWithoutTermsAreLeftOut) {
  const std::string loops = LoopsOf(R"(buffer b0 int64[1] read
buffer b1 float32[6400] read
buffer b2 float32[1] write
stage reduce r0:6400
  b2[0] = sum(where(cmplt(r0, b0[0]), b1[r0], 0:float32))
)",
                                    "");
  EXPECT_THAT(loops, HasSubstr("for r1 < min(100, "));
  EXPECT_THAT(loops, HasSubstr("for r2 < min(64, "));
}

// Tiles of threads keep longer chains. Blocks do not hide the loops of a matrix unit from emitters.
TEST(BlocksOfSums, MatrixUnitsAddUpWithinBlocks) {
  for (const int64_t terms : {8192, 9216}) {
    const std::string loops = LoopsOf(
        absl::StrCat("buffer b0 float16[", 16 * terms, "] read\nbuffer b1 float16[", 8 * terms,
                     "] read\nbuffer b2 float32[128] write\nstage r0:16 r1:8 reduce r2:", terms,
                     "\n  b2[r0*8 + r1] = sum(float32(b0[r0*", terms, " + r2])*float32(b1[r1*",
                     terms, " + r2]))\n"),
        "split 0 16\nsplit 4 8\nsplit 1 8\nsplit 8 2\nsplit 2 16\nbind 3 task\nbind 7 task\n"
        "bind 6 thread\nbind 9 thread\nbind 5 matrix\nbind 10 matrix\nbind 12 matrix\n"
        "order 0 3 7 11 6 9 5 10 12\nstage 0 0 11 8 0 2\nstage 0 1 11 8 1 2\n");
    EXPECT_THAT(loops, HasSubstr("matrix r")) << terms;
    EXPECT_EQ(loops.find("block") != std::string::npos, terms > 8192) << loops;
  }
}

}  // namespace
}  // namespace kiln::schedule
