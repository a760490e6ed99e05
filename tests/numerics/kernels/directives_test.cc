// Hand-written directives for cases that the heuristic rarely or never chooses, on kernels with
// ragged ends: compiled, proved and compared with the interpreter.
#include <gtest/gtest.h>

#include "compiler/ir/str_cat.h"
#include "tests/numerics/kernels/kernel_check.h"
#include "tests/numerics/kernels/scheduled_kernels.h"

namespace kiln::codegen {
namespace {

class DirectivesTest : public KernelsTest {};

// The lanes past the ragged end would read three times as far past the end of the local.
TEST_F(DirectivesTest, RaggedLanesGoAcrossALocal) {
  const char kernel[] = R"(buffer b0 float32[30] read
buffer b1 float32[10] write
buffer b2 float32[30] local
stage r0:30
  b2[r0] = b0[r0]
stage r1:10 reduce r2:3
  b1[r1] = sum(b2[r1*3 + r2])
)";
  for (int lanes : {4, 8, 16}) {
    ExpectRight(kernel, StrCat("split 1 ", lanes, "\nbind 4 vector\norder 1 3 4 2\n"));
  }
}

// Lane 0 of the first vector would read before the local.
TEST_F(DirectivesTest, RaggedLanesBeginInFrontOfALocal) {
  for (int lanes : {4, 8, 16}) {
    ExpectRight(numerics::kRaggedLocal,
                StrCat("split 1 ", lanes, "\nbind 3 vector\norder 1 2 3\n"));
  }
}

TEST_F(DirectivesTest, PrefetchesAheadOfLanesAndBeyondTheEnd) {
  for (const char* order : {"order 0 0 3 2 4\n", "order 0 0 3 4 2\n"}) {
    ExpectRight(numerics::Matmul("float32"),
                StrCat("split 1 16\nbind 4 vector\n", order,
                       "prefetch 0 1 2 4\nprefetch 0 0 0 3\nprefetch 0 2 0 1\n"));
  }
  // Neighbours that are the same for the first lane are fetched once.
  ExpectRight(R"(buffer b0 float32[100] read
buffer b1 float32[32] write
stage r0:2 r1:16
  b1[r0*16 + r1] = b0[r0*20 + r1] + b0[r0*20 + r1*3]
)",
              "split 1 16\nbind 3 vector\nprefetch 0 0 0 1\norder 0 0 2 3\n");
  // Without a sum; an index that is itself read from memory is not prefetched.
  ExpectRight(R"(buffer b0 float32[100] read
buffer b1 int64[100] read
buffer b2 float32[100] write
stage r0:100
  b2[r0] = b0[b1[r0]%100] + b0[r0] + b0[r0]*2:float32
)",
              "split 0 16\nbind 2 vector\nprefetch 0 0 0 32\nprefetch 0 1 0 32\n");
}

TEST_F(DirectivesTest, StreamsBesideTheCache) {
  const char kernel[] = R"(buffer b0 float32[4096] read
buffer b1 float32[4096] write
stage r0:4096
  b1[r0] = b0[r0] + 1:float32
)";
  ExpectRight(kernel, "split 0 16\nbind 2 vector\nstream 0\n");
  ExpectRight(kernel, "stream 0\n");
}

// Nested splits: an outer serial loop of ragged tiles around unrolled and serial inner ones.
TEST_F(DirectivesTest, TilesOfRaggedTiles) {
  for (const char* directives : {
           "split 0 7\nsplit 4 3\nbind 6 unroll\norder 0 3 5 6 1 2\n",
           "split 0 7\nsplit 4 3\nbind 5 unroll\norder 0 3 5 6 1 2\n",
           "split 0 6\nsplit 4 3\nbind 6 unroll\norder 0 3 5 6 1 2\n",
           "split 0 16\nsplit 4 8\nsplit 6 3\nbind 8 unroll\norder 0 3 5 7 8 1 2\n",
           "split 1 24\nsplit 4 8\nbind 6 vector\norder 0 0 3 5 2 6\n",
           "split 1 24\nsplit 4 16\nbind 6 vector\nbind 5 unroll\norder 0 0 3 2 5 6\n",
           "split 2 16\nsplit 4 4\nbind 6 unroll\npartial 6\norder 0 0 1 3 5 6\n",
           "split 2 11\nsplit 4 4\nbind 6 vector\norder 0 0 1 3 5 6\n",
           "split 0 64\nsplit 4 8\nbind 6 unroll\norder 0 3 5 6 1 2\n",
           "split 0 3\nbind 3 unroll\norder 0 3 4 1 2\n",
           "split 0 8\nbind 3 task\nsplit 4 4\nbind 5 unroll\nbind 6 unroll\norder 0 3 1 2 5 6\n",
           "split 0 20\nsplit 4 4\nsplit 5 2\norder 0 3 7 8 6 1 2\n",
           "split 1 1\nbind 4 vector\norder 0 0 3 2 4\n",
       }) {
    ExpectRight(numerics::Matmul("float32"), directives);
  }
}

TEST_F(DirectivesTest, FusedAxesAreSplitAndBound) {
  const char kernel[] = R"(buffer b0 float32[210] read
buffer b1 float32[210] write
stage r0:5 r1:6 r2:7
  b1[r0*42 + r1*7 + r2] = b0[r0*42 + r1*7 + r2]*3:float32
)";
  for (const char* directives : {
           "fuse 1 2\nfuse 0 3\nsplit 4 16\nbind 6 vector\n",
           "fuse 0 1\nbind 3 task\norder 0 3 2\n",
           "fuse 1 2\nsplit 3 8\nbind 5 vector\nbind 0 task\n",
       }) {
    ExpectRight(kernel, directives);
  }
}

TEST_F(DirectivesTest, FactorsAreStagedInOddLayouts) {
  for (const char* directives : {
           // Rows with fewer places than lanes; long rows; a tile of a tile; across memory.
           "split 1 16\nbind 4 vector\norder 0 3 0 2 4\nstage 0 1 3 16 2 1\n",
           "split 2 7\norder 0 3 0 1 4\nstage 0 1 3 4 1 2\n",
           "split 2 7\norder 0 3 0 1 4\nstage 0 0 3 8 0 2\n",
           "split 0 7\nsplit 2 16\norder 0 5 3 1 4 6\nstage 0 0 3 4 2 0\n",
           "split 0 6\nsplit 4 4\nbind 6 unroll\nsplit 2 16\norder 0 7 3 5 1 8 6\nstage 0 0 3 4 2 "
           "0\n",
           "order 0 0 1 2\nstage 0 0 -1 16 0 2\nstage 0 1 -1 8 1 2\n",
       }) {
    ExpectRight(numerics::Matmul("float32"), directives);
  }
  // Strided windows: once r1 is open, the rest of r1 + 2*r4 has no place for each value.
  const char window[] = R"(buffer b0 float32[200] read
buffer b1 float32[56] read
buffer b2 float32[40] write
stage r0:8 r1:5 reduce r2:7 r3:3
  b2[r0*5 + r1] = sum(b0[r0*19 + r1*2 + r2*4 + r3*6]*b1[r0*7 + r2])
)";
  for (const char* directives : {
           "order 0 0 1 2 3\nstage 0 0 0 4 2*1+4*2+6*3\n",
           "order 0 0 1 2 3\nstage 0 0 1 4 1*1+2*2+3*3\n",
           "order 0 0 2 1 3\nstage 0 0 2 4 3 1*1+2*2\n",
           "order 0 0 1 2 3\nstage 0 0 1 4 1*1+2*2+3*3 0\n",
       }) {
    ExpectRight(window, directives);
  }
}

// Factors whose indices have quotients, that are masked, or have as many axes as images.
TEST_F(DirectivesTest, FactorsOfPicturesAreStaged) {
  const char quotients[] = R"(buffer b0 float32[80] read
buffer b1 float32[96] read
buffer b2 float32[60] write
stage r0:10 r1:6 reduce r2:4 r3:4
  b2[r0*6 + r1] = sum(b0[(r0 + r2)//2*4 + r3]*b1[r2*24 + r3%4*6 + r1])
)";
  for (const char* directives : {
           "stage 0 0 -1 4 0 2 3\n",
           "stage 0 1 -1 4 2 3 1\n",
           // One loop for r1 and r3 would have to use r3 % 4 in place of r3.
           "stage 0 1 -1 4 1 2 3\n",
           "stage 0 1 -1 4 2 3 1\nstage 0 0 -1 4 3 0 2\n",
       }) {
    ExpectRight(quotients, directives);
  }
  const char picture[] = R"(buffer b0 float32[2520] read
buffer b1 float32[63] read
buffer b2 float32[330] write
stage r0:3 r1:10 r2:11 reduce r3:7 r4:3
  b2[r0*110 + r1*11 + r2] = sum(b0[r0*840 + r1*84 + r2*2 + r4 + r3*6 if cmplt(r1, 9)]*b1[r3*9 + r4*3 + r0])
)";
  for (const char* directives : {
           "split 1 4\norder 0 5 0 6 2 3 4\nstage 0 0 5 4 0 1 3 2*2+1*4\n",
           "split 2 4\norder 0 0 5 1 6 3 4\nstage 0 0 5 4 3 2 1 4\n",
           "split 3 4\norder 0 0 5 1 2 6 4\nstage 0 1 5 4 0 3 4\n",
           "split 2 8\nbind 6 vector\norder 0 0 1 5 3 4 6\nstage 0 0 -1 8 0 1 3 2*2+1*4\n",
           "split 2 4\nbind 6 vector\norder 0 0 1 5 3 4 6\nstage 0 0 -1 4 0 1 3 2*2+1*4\n",
           "split 2 8\nbind 6 vector\norder 0 0 1 5 3 4 6\nstage 0 0 -1 4 0 1 3 4 2\n",
       }) {
    ExpectRight(picture, directives);
  }
}

TEST_F(DirectivesTest, ScattersInOrder) {
  for (const char* directives : {
           "",
           "fuse 0 1\norder 0 4 2 3\n",
           "fuse 0 1\nsplit 4 4\nbind 6 vector\norder 0 2 3 5 6\n",
           "fuse 0 1\nsplit 4 8\nbind 6 vector\norder 0 5 6 2 3\n",
           "split 2 2\nsplit 3 3\norder 0 4 5 6 7 0 1\n",
           "split 0 4\nbind 5 vector\norder 0 4 2 3 1 5\n",
           "bind 0 task\nsplit 3 2\nbind 5 unroll\norder 0 0 2 4 5 1\n",
       }) {
    ExpectRight(numerics::kScatter, directives);
  }
}

// Loops write sums in memory with long results; without fused sums they stay in place.
TEST_F(DirectivesTest, LongResultsOfManySums) {
  std::string text = R"(buffer b0 float32[600] read
buffer b1 float32[1200] read
buffer b2 float32[800] write
stage r0:20 r1:40 reduce r2:30
  v0 = sum(b0[r0*30 + r2]*b1[r2*40 + r1])
)";
  for (int i = 1; i <= 24; ++i)
    text += StrCat("  v", i, " = v", i - 1, "*0.5:float32 + v", i / 2, "\n");
  text += "  b2[r0*40 + r1] = v24\n";
  ExpectRight(text,
              "split 0 8\nbind 4 unroll\nsplit 1 64\nsplit 6 16\nbind 7 unroll\nbind 8 vector\n"
              "order 0 3 5 2 4 7 8\n",
              1e-3);
}

// A pool's gradient with lanes wider than a register, and one element left over at the end of each
// row: LLVM 22 loaded the whole masked part without its mask.
TEST_F(DirectivesTest, MaskedPartsOfWideLanesAreNotRead) {
  for (const int lanes : {8, 16}) {
    ExpectRight(R"(buffer b0 float64[6555] read
buffer b1 float64[5775] read
buffer b2 float64[5775] write
buffer b3 float64[6555] write
buffer b4 float64[1155] local
buffer b5 float64[1155] local
grid r0:5
stage r1:21 r2:55 reduce r3:3 r4:3
  v0 = max(b0[r0*1311 + r1*57 + r3*57 + r2 + r4])
  b4[r1*55 + r2] = v0
  b2[r0*1155 + r1*55 + r2] = v0
stage r5:21 r6:55 reduce r7:3 r8:3
  b5[r5*55 + r6] = sum(where(cmpeq(b0[r0*1311 + r5*57 + r7*57 + r6 + r8], b4[r5*55 + r6]), 1:float64, 0:float64))
stage r9:23 r10:57 reduce r11:3 r12:3
  v1 = and(and(and(cmplt(-1, r9 + r11*-1), cmplt(-1, r10 + r12*-1)), cmplt(r9 + r11*-1, 21)), cmplt(r10 + r12*-1, 55))
  b3[r0*1311 + r9*57 + r10] = sum(where(v1, where(cmpeq(b0[r0*1311 + r9*57 + r10 if v1], b4[r9*55 + r11*-55 + r10 + r12*-1 if v1]), b1[r0*1155 + r9*55 + r11*-55 + r10 + r12*-1 if v1]/b5[r9*55 + r11*-55 + r10 + r12*-1 if v1], 0:float64), 0:float64))
)",
                StrCat("split 10 ", lanes, "\nbind 14 vector\norder 2 9 13 11 12 14\n"), 1e-12);
  }
}

}  // namespace
}  // namespace kiln::codegen
