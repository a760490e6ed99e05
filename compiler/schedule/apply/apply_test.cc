// The loops that Apply builds from schedules, and the schedules that it refuses.
#include "compiler/schedule/apply/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/kernel/kernel.h"

namespace kiln::schedule {
namespace {

using codegen::KernelWriter;
using testing::HasSubstr;
using testing::Not;

// out[i, j] = Σ in0[i, k] * in1[k, j], 20 by 40 by 30.
std::string Applied(const char* schedule) {
  ir::Context context;
  auto program = Apply(codegen::MatmulKernel(context, 20, 40, 30), *Parse(schedule));
  return program.ok() ? Print(*program) : std::string(program.status().message());
}

std::string AppliedTo(const char* kernel, const char* schedule) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel, context);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const auto program = Apply(*parsed, *Parse(schedule));
  return program.ok() ? Print(*program) : std::string(program.status().message());
}

TEST(Apply, WithoutDirectivesAllLoopsAreSerial) {
  EXPECT_EQ(Applied(""),
            "global in0: float32[600]\n"
            "global in1: float32[1200]\n"
            "global out2: float32[800]\n"
            "register sum3: float32[1]\n"
            "tasks\n"
            "  for r3 < 20\n"
            "    for r4 < 40\n"
            "      sum3[0] = 0\n"
            "      for r5 < 30\n"
            "        sum3[0] = (sum3[0] + in0[(r3*30 + r5)]*in1[(r5*40 + r4)])\n"
            "      out2[(r3*40 + r4)] = sum3[0]\n");
}

TEST(Apply, TasksBecomeTheGrid) {
  EXPECT_THAT(Applied("bind 0 task"), HasSubstr("tasks r3 < 20\n  for r4 < 40\n"));
}

TEST(Apply, UnrolledEndsArePeeled) {
  const std::string text = Applied("split 0 8\nbind 4 unroll\norder 0 3 1 2 4");
  EXPECT_THAT(text, HasSubstr("for r3 < 2\n"));
  EXPECT_THAT(text, HasSubstr("unroll r5 < 8\n"));
  EXPECT_THAT(text, HasSubstr("unroll r10 < 4\n"));
  EXPECT_THAT(text, HasSubstr("register sum3: float32[8]\n"));
}

TEST(Apply, SerialEndsGetAComputedExtent) {
  EXPECT_THAT(Applied("split 0 8\norder 0 3 4 1 2"),
              HasSubstr("for r3 < 3\n    for r4 < where(cmpeq(r3, 2), 4, 8)\n"));
}

TEST(Apply, LanesThatAreTooManyAreMasked) {
  const std::string text = Applied("split 1 16\nbind 4 vector\norder 0 0 3 4 2");
  EXPECT_THAT(text, HasSubstr("register sum3: float32[1] x 16\n"));
  EXPECT_THAT(text, HasSubstr("lanes r5 < 16\n"));
  EXPECT_THAT(text, HasSubstr(" if cmplt(r7, 8)"));
}

TEST(Apply, ASumOutsideItsTileIsKeptInScratch) {
  const std::string text = Applied("split 2 10\norder 0 3 0 1 4");
  EXPECT_THAT(text, HasSubstr("scratch sum3: float32[800]\n"));
  EXPECT_THAT(text, HasSubstr("register sum4: float32[1]\n"));
}

TEST(Apply, PartialSumsAreAddedUp) {
  const std::string text = Applied("split 2 2\nbind 4 unroll\npartial 4\norder 0 0 1 3 4");
  EXPECT_THAT(text, HasSubstr("register sum3: float32[2]\n"));
  EXPECT_THAT(text, HasSubstr("= (sum3[0] + sum3[1])\n"));
}

TEST(Apply, AFactorIsStagedInItsLayout) {
  const std::string text =
      Applied("split 1 16\nbind 4 vector\norder 0 3 0 2 4\nstage 0 1 3 16 2 1");
  EXPECT_THAT(text, HasSubstr("scratch staged"));
  EXPECT_THAT(text, HasSubstr("float32[480]\n"));
}

TEST(Apply, PrintsBranchesFetchesAndNamesForLongExpressions) {
  EXPECT_THAT(Applied("split 0 7\nsplit 4 3\nbind 6 unroll\norder 0 3 5 6 1 2"),
              testing::AllOf(HasSubstr("if cmpeq("), HasSubstr("else\n")));
  EXPECT_THAT(Applied("prefetch 0 1 2 4"), HasSubstr("prefetch in1[((r5 + 4)*40 + r4)]\n"));
  std::string kernel =
      "buffer b0 float32[9] read\nbuffer b1 float32[9] write\nstage r0:9\n  v0 = b0[r0]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "v" + std::to_string(i - 1);
    kernel += "  v" + std::to_string(i) + " = " + before + "*" + before + "\n";
  }
  const std::string text = AppliedTo((kernel + "  b1[r0] = v29\n").c_str(), "");
  EXPECT_THAT(text, HasSubstr("t0 = in0[r1]*in0[r1]*"));
  EXPECT_THAT(text, HasSubstr("out1[r1] = t3*t3"));
  EXPECT_LT(text.size(), 2000);
}

// A sum over windows of 3 x 3 with a border of zeros.
constexpr char kWindows[] = R"(buffer b0 float32[128] read
buffer b1 float32[72] read
buffer b2 float32[64] write
stage r0:4 r1:4 r2:4 reduce r3:2 r4:3 r5:3
  b2[r0*16 + r1*4 + r2] = sum(b0[r0*32 + r3*16 + r1*4 + r4*4 + r2 + r5 + -5 if and(and(and(cmplt(0, r1 + r4), cmplt(0, r2 + r5)), cmplt(r1 + r4, 5)), cmplt(r2 + r5, 5))]*b1[r3*9 + r4*3 + r5])
)";

TEST(Apply, PaddingIsSkippedAsFarOutAsItIsKnown) {
  // The rows' conditions are around the loop of the columns, and nothing is left to test inside.
  const std::string text = AppliedTo(kWindows, "skip 0\norder 0 1 2 4 5 3 0");
  EXPECT_THAT(text, HasSubstr("        if and(cmplt((r6 + r9), 5), cmplt(0, (r6 + r9)))\n"
                              "          for r10 < 3\n"
                              "            if and(cmplt((r7 + r10), 5), cmplt(0, (r7 + r10)))\n"));
  EXPECT_THAT(text, Not(HasSubstr("] if")));
  EXPECT_THAT(text, Not(HasSubstr("else")));
  // Without the directive the load has all conditions.
  EXPECT_THAT(AppliedTo(kWindows, "order 0 1 2 4 5 3 0"), HasSubstr("] if and("));
}

TEST(Apply, LanesAndTilesAreNotTested) {
  // Lanes along the columns: only rows are tested.
  const std::string lanes = AppliedTo(kWindows, "skip 0\nbind 2 vector\norder 0 0 1 3 4 5 2");
  EXPECT_THAT(lanes, HasSubstr(" if and(cmplt((r7 + r10), 5), cmplt(0, (r7 + r10)))\n"));
  EXPECT_THAT(lanes, HasSubstr("] if and(cmplt(0, "));
  // A tile of all rows: nothing is tested.
  const std::string tile =
      AppliedTo(kWindows, "skip 0\nbind 2 vector\nbind 1 unroll\norder 0 0 3 4 5 1 2");
  EXPECT_THAT(tile, Not(HasSubstr("  if and(")));
}

// Without the mask the last lanes would read past the end of the copy.
TEST(Apply, LanesThatAreTooManyReadNoCopy) {
  constexpr char kLanes[] = "split 1 16\nbind 4 vector\norder 0 0 3 4 2\n";
  const std::string across = Applied(absl::StrCat(kLanes, "stage 0 1 -1 16 1 2").c_str());
  EXPECT_THAT(across, HasSubstr("staged3[((32 + r18)*32 + r19)] if cmplt(r18, 8)"));
  const std::string along = Applied(absl::StrCat(kLanes, "stage 0 1 -1 16 2 1").c_str());
  EXPECT_THAT(along, Not(HasSubstr("staged3[((r19*48 + 32) + r18)] if")));
}

// The kernel has 40 columns.
TEST(Apply, BeyondAPaddedEndNothingIsReadOrStored) {
  const std::string text =
      Applied("pad 1 64\nsplit 1 16\nbind 0 task\nbind 3 task\nbind 4 thread\n");
  EXPECT_THAT(text, HasSubstr("cmplt("));
  EXPECT_THAT(text, HasSubstr(", 40)"));
  // The condition is the same for 8 adjacent threads.
  EXPECT_THAT(Applied("pad 1 64\nsplit 1 8\nbind 0 task\nbind 3 task\nbind 4 thread\n"),
              HasSubstr("if cmplt(r4*8, 40)"));
}

TEST(Apply, WhatDoesNotFitIsRefused) {
  const struct {
    const char* text;
    const char* message;
  } mistakes[] = {
      {"split 9 4", "'split 9 4': no such axis"},
      {"split 0 0", "the factor must be at least 1"},
      {"split 0 16\nsplit 4 3\nsplit 5 2", "split the inner one instead"},
      {"split 0 16\nsplit 4 8\nsplit 5 2", "split the inner one instead"},
      {"bind 2 task", "tasks cannot share a sum"},
      {"bind 0 vector", "not a power of two"},
      {"order 0 0 1", "not each of the stage's axes once"},
      {"split 0 3\norder 0 4 3 1 2", "an inner axis before its outer one"},
      // Only both parts of the outer part determine which piece is the last one.
      {"split 2 8\nsplit 3 2\norder 0 0 1 6 5 4", "an inner axis before its outer one"},
      {"bind 1 task\norder 0 2 0 1", "a task inside a loop"},
      {"split 1 16\nbind 3 task\nbind 4 task\norder 0 3 4 0 2",
       "tasks of a piece that may be shorter"},
      {"split 1 8\nbind 4 vector\nstage 0 0 2 8 0 2\norder 0 0 3 4 2", "lanes inside lanes"},
      {"split 0 4\nsplit 1 4\nbind 4 vector\nbind 6 vector", "two axes bound to lanes"},
      {"pad 1 16", "'pad 1 48': there are no threads"},
      {"pad 2 64\nbind 0 thread", "only sums of matrix units can have terms that are zero"},
      {"split 1 8\npad 4 16\nbind 0 thread", "not a whole axis of a stage with its own tasks"},
      {"split 1 8\npad 1 16\nbind 0 thread", "no such axis"},
      {"pad 1 0\nbind 0 thread", "neither the multiple nor the extent may be 0"},
      {"pad 1 16\nbind 0 thread\nstage 0 1 -1 1 2*2+1*1", "axis 1 is padded"},
      {"partial 0", "no such reduce axis"},
      {"order 3 0 1 2", "no such stage"},
      {"stage 0 2 -1 16 2 1", "no such product to stage"},
      {"split 2 4\nstage 0 1 -1 16 3 1", "axis 3 is not a range"},
      {"stage 0 1 -1 16 7", "axis 7 is not a range"},
      {"stage 0 1 -1 16 -1", "axis -1 is not a range"},
      {"stage 0 1 -1 16 0*1+2", "a coefficient is 0"},
      {"stage 0 1 -1 0 2 1", "the lanes must be a power of two"},
      {"stage 3 1 -1 16 2 1", "no such stage"},
      {"stage 0 1 -1 1 2 1", "the lanes must be 2 or more"},
      {"stage 0 1 -1 12 2 1", "the lanes must be a power of two"},
      {"stream 5", "no such stage"},
      {"stream -2", "no such stage"},
      {"skip 5", "no such stage"},
      {"skip -2", "no such stage"},
      {"skip 0\nbind 0 thread", "blocks of threads compute all terms"},
      {"split -1 4", "no such axis"},
      {"split 0 4\nsplit 0 4", "no such axis"},
      {"fuse 0 9", "no such axes"},
      {"fuse -1 0", "no such axes"},
      {"fuse 1 2", "are not whole loops of one kind"},
      {"split 0 4\nfuse 4 1", "are not whole loops of one kind"},
      {"split 1 4\nfuse 0 3", "are not whole loops of one kind"},
      {"bind 7 task", "no such axis"},
      {"partial 9", "no such reduce axis"},
      {"order -1 0 1 2", "no such stage"},
      {"order 0 0 1 9", "no axis 9"},
      {"order 0 0 1 -3", "no axis -3"},
      {"prefetch 4 0 2 1", "no such stage"},
      {"prefetch 0 9 2 1", "no such buffer in memory"},
      {"prefetch 0 -1 2 1", "no such buffer in memory"},
      {"prefetch 0 0 9 1", "not a range of the kernel"},
      {"prefetch 0 0 -1 1", "not a range of the kernel"},
      {"split 2 4\nprefetch 0 0 3 1", "not a range of the kernel"},
  };
  for (const auto& mistake : mistakes) {
    EXPECT_THAT(Applied(mistake.text), HasSubstr(mistake.message)) << mistake.text;
  }
}

TEST(Apply, AnInnerPartWhoseLengthIsKnownMayStandInFront) {
  EXPECT_THAT(Applied("split 0 4\norder 0 4 3 1 2"),
              HasSubstr("for r3 < 4\n    for r4 < 5\n      for r5 < 40\n"));
}

// Axes: 3 is 16 rows in 3 x 16, 5 halves and groups; 7 is 8 columns, 9 members and columns.
constexpr char kShortProduct[] = R"(buffer b0 float16[1536] read
buffer b1 float16[512] read
buffer b2 float32[768] write
stage r0:48 r1:16 reduce r2:32
  b2[r0*16 + r1] = sum(float32(b0[r0*32 + r2])*float32(b1[r1*32 + r2]))
)";
constexpr char kMatrixAxes[] =
    "split 0 16\nsplit 4 8\nsplit 1 8\nsplit 8 2\nsplit 2 16\nbind 3 task\nbind 7 task\n"
    "bind 6 thread\nbind 9 thread\nbind 5 matrix\nbind 10 matrix\nbind 12 matrix\n";

TEST(Apply, AMatrixUnitTakesItsThreeAxes) {
  EXPECT_THAT(AppliedTo(kShortProduct, absl::StrCat(kMatrixAxes,
                                                    "order 0 3 7 11 6 9 5 10 12\n"
                                                    "stage 0 0 11 8 0 2\n"
                                                    "stage 0 1 11 8 1 2\n")
                                           .c_str()),
              HasSubstr("matrix r26 < 2\n          unroll r27 < 2\n            unroll r28 < 16\n"));
}

TEST(Apply, WhatIsNoMatrixStepIsRefused) {
  const std::string axes = kMatrixAxes;
  const std::string staged = "stage 0 0 11 8 0 2\nstage 0 1 11 8 1 2\n";
  const std::string order = "order 0 3 7 11 6 9 5 10 12\n";
  const auto refused = [&](const std::string& schedule, const char* kernel = kShortProduct) {
    return AppliedTo(kernel, schedule.c_str());
  };
  EXPECT_THAT(refused(axes + order), HasSubstr("takes factors that are staged"));
  EXPECT_THAT(refused(axes + "order 0 3 7 11 6 9 10 5 12\n" + staged), HasSubstr("takes 16 rows"));
  EXPECT_THAT(refused(axes + "order 0 3 7 11 9 6 5 10 12\n" + staged), HasSubstr("takes 16 rows"));
  EXPECT_THAT(refused(axes + "order 0 3 7 12 6 9 11 5 10\n"),
              HasSubstr("the three innermost axes"));
  EXPECT_THAT(refused("bind 2 matrix"), HasSubstr("the three innermost axes"));
  // A whole tile, and one that ends early.
  const std::string ragged = R"(buffer b0 float16[1504] read
buffer b1 float16[512] read
buffer b2 float32[752] write
stage r0:47 r1:16 reduce r2:32
  b2[r0*16 + r1] = sum(float32(b0[r0*32 + r2])*float32(b1[r1*32 + r2]))
)";
  EXPECT_THAT(refused(axes + "order 0 3 7 11 6 9 5 10 12\n" + staged, ragged.c_str()),
              HasSubstr("inner axis before its outer one"));
  // float32 that is not rounded to tf32 would lose bits.
  const std::string wide = R"(buffer b0 float32[1536] read
buffer b1 float32[512] read
buffer b2 float32[768] write
stage r0:48 r1:16 reduce r2:32
  b2[r0*16 + r1] = sum(b0[r0*32 + r2]*b1[r1*32 + r2])
)";
  EXPECT_THAT(refused(axes + order + staged, wide.c_str()),
              HasSubstr("products of float16, bfloat16 or tf32"));
}

// Two stages inside one grid, of which the first writes a local.
constexpr char kShared[] = R"(buffer b0 float32[60] read
buffer b1 float32[60] write
buffer b2 float32[6] local
grid r0:10
stage r1:6
  b2[r1] = b0[r0*6 + r1]
stage r2:6
  b1[r0*6 + r2] = b2[r2]
)";

TEST(Apply, WhatDoesNotFitASharedGridIsRefused) {
  EXPECT_THAT(AppliedTo(kShared, "split 0 4\nbind 4 vector\nsplit 1 2\nbind 6 vector"),
              HasSubstr("lanes inside the lanes of the grid"));
  EXPECT_THAT(AppliedTo(kShared, "order -1 1"), HasSubstr("not each of the stage's axes once"));
  EXPECT_THAT(AppliedTo(kShared, "prefetch 0 2 1 1"), HasSubstr("no such buffer in memory"));
  EXPECT_THAT(AppliedTo(kShared, "stage 0 0 -1 4 1"), HasSubstr("no such product to stage"));
  EXPECT_THAT(AppliedTo(kShared, "fuse 1 2"), HasSubstr("are not whole loops of one kind"));
}

TEST(Apply, OnlyFactorsOfProductsAreStaged) {
  EXPECT_THAT(AppliedTo("buffer b0 float32[60] read\nbuffer b1 float32[6] write\n"
                        "stage r0:6 reduce r1:10\n  b1[r0] = sum(b0[r0*10 + r1])\n",
                        "stage 0 0 -1 4 0 1"),
              HasSubstr("no such product to stage"));
  ir::Context context;
  Schedule without_layout;
  without_layout.directives.push_back(StageOperand{0, 0, -1, 4, {}});
  const auto program = Apply(codegen::MatmulKernel(context, 20, 40, 30), without_layout);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("no such product to stage"));
}

// Adds rows of eight at positions loaded from memory, if these are among the first six.
constexpr char kScatter[] = R"(buffer b0 float32[160] read
buffer b1 int64[20] read
buffer b2 float32[80] update
stage r0:8 order r1:5 r2:4
  b2[b1[r1*4 + r2]*8 + r0 if cmplt(b1[r1*4 + r2], 6)] = b2[b1[r1*4 + r2]*8 + r0 if cmplt(b1[r1*4 + r2], 6)] + b0[r1*32 + r2*8 + r0]
)";

TEST(Apply, StepsInOrderStayInOrder) {
  const struct {
    const char* text;
    const char* message;
  } mistakes[] = {
      {"bind 1 task", "the steps of the axis must be sequential"},
      {"split 2 4\nbind 4 vector", "the steps of the axis must be sequential"},
      {"order 0 0 2 1", "ordered axes in another order"},
      {"split 1 2\norder 0 3 2 0 4", "ordered axes in another order"},
      {"split 2 2\norder 0 0 1 4 3", "an inner axis before its outer one"},
      {"fuse 1 2", "are not whole loops of one kind"},
      {"fuse 0 1", "are not whole loops of one kind"},
  };
  for (const auto& mistake : mistakes) {
    EXPECT_THAT(AppliedTo(kScatter, mistake.text), HasSubstr(mistake.message)) << mistake.text;
  }
}

TEST(Apply, AScatterAsksOnceWhetherItsPlaceIsThere) {
  EXPECT_THAT(AppliedTo(kScatter, "order 0 1 2 0"),
              HasSubstr("      if cmplt(in1[(r3*4 + r4)], 6)\n        for r5 < 8\n"));
}

TEST(Apply, ContiguousRangesFuse) {
  ir::Context context;
  KernelWriter w(context);
  const int x = w.In(60), y = w.Out(60);
  auto i = w.Range(6), j = w.Range(10);
  w.Stage({i, j});
  w.Store(y, i * 10 + j, w.Load(x, i * 10 + j));
  auto program = Apply(w.kernel, *Parse("fuse 0 1"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Print(*program), HasSubstr("for r2 < 60\n    out1[r2] = in0[r2]\n"));
}

TEST(Apply, OtherRangesAreDigitsOfTheFusedAxis) {
  ir::Context context;
  KernelWriter w(context);
  const int x = w.In(96), y = w.Out(64);
  auto i = w.Range(8), j = w.Range(8);
  w.Stage({i, j});
  w.Store(y, i * 8 + j, w.Load(x, i * 12 + j));
  // Four lanes are in one row, so that no lane divides.
  auto program = Apply(w.kernel, *Parse("fuse 0 1\nsplit 2 4\nbind 4 vector"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Print(*program), HasSubstr("in0[(idiv(r2, 2)*12 + ((r2*4 + r3) + idiv(r2, 2)*-8))]"));
}

TEST(Apply, StagesWithoutSharedLoopsHaveTasksOfTheirOwn) {
  ir::Context context;
  KernelWriter w(context);
  const int x = w.In(60), y = w.Out(60), z = w.Out(7);
  auto i = w.Range(60), j = w.Range(7);
  w.Stage({i});
  w.Store(y, i, w.Load(x, i));
  w.Stage({j});
  w.Store(z, j, w.Load(x, j));
  auto program = Apply(w.kernel, *Parse("bind 0 task\nbind 1 task"));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->sections.size(), 2);
  EXPECT_EQ(program->grid_size(), 67);
}

// Only the first b0[0] of 100 terms count.
constexpr char kMaskedSum[] = R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[100] read
buffer b3 float32[1] write
stage reduce r0:100
  b3[0] = sum(where(cmplt(r0, b0[0]), b1[r0], 0:float32)*b2[r0])
)";

TEST(Shorten, AMaskedSumEndsWhereItsTermsDo) {
  EXPECT_THAT(AppliedTo(kMaskedSum, ""), HasSubstr("< min(100, max(in0[0], 0))"));
  // Eight at a time: rounded up where that cannot wrap, with the last ones masked as before.
  const std::string split = AppliedTo(kMaskedSum, "split 0 8\npartial 2\nbind 2 unroll\n");
  EXPECT_THAT(split, HasSubstr("idiv((in0[0] + 7), 8), 12), 0))"));
  EXPECT_THAT(split, HasSubstr("cmplt(in0[0], 2305843009213693951)), idiv("));
  EXPECT_THAT(split, HasSubstr("where(cmplt((r2*8 + r3), in0[0])"));
}

TEST(Shorten, WhatStillHasAnEffectGoesOn) {
  // Past b0[0], the first adds ones. The maximum's terms are 0, which is not the identity of a
  // maximum. The third sums the positions after b0[0].
  for (const char* value : {"sum(where(cmplt(r0, b0[0]), b1[r0], 1:float32))",
                            "max(where(cmplt(r0, b0[0]), b1[r0], 0:float32))",
                            "sum(where(cmplt(b0[0], r0), b1[r0], 0:float32))"}) {
    const std::string kernel = std::string(R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[1] write
stage reduce r0:100
  b2[0] = )") + value + "\n";
    EXPECT_THAT(AppliedTo(kernel.c_str(), ""), testing::Not(HasSubstr("max(in0[0]"))) << value;
  }
}

}  // namespace
}  // namespace kiln::schedule
