#include "tests/numerics/cases/thread_cases.h"

#include "compiler/ir/str_cat.h"
#include "tests/numerics/cases/cases.h"

namespace kiln::numerics {
namespace {

std::string Matmul(const char* dtype) {
  return StrCat("buffer b0 ", dtype, "[600] read\nbuffer b1 ", dtype, "[1200] read\nbuffer b2 ",
                dtype,
                R"([800] write
stage r0:20 r1:40 reduce r2:30
  b2[r0*40 + r1] = sum(b0[r0*30 + r2]*b1[r2*40 + r1])
)");
}

// Each row's maximum, the sum of the rest of the row, and the quotients.
constexpr char kSoftmax[] = R"(buffer b0 float32[185] read
buffer b1 float32[185] write
buffer b2 float32[1] local
buffer b3 float32[37] local
buffer b4 float32[1] local
grid r0:5
stage reduce r1:37
  b2[0] = max(b0[r0*37 + r1])
stage r2:37
  b3[r2] = exp2(sub(b0[r0*37 + r2], b2[0]))
stage reduce r3:37
  b4[0] = sum(b3[r3])
stage r4:37
  b1[r0*37 + r4] = div(b3[r4], b4[0])
)";

// A convolution of stride 2 with a border.
constexpr char kConvolution[] = R"(buffer b0 float32[486] read
buffer b1 float32[216] read
buffer b2 float32[200] write
stage r0:2 r1:4 r2:5 r3:5 reduce r4:3 r5:3 r6:3
  b2[r0*100 + r1*25 + r2*5 + r3] = sum(b0[r0*243 + r4*81 + r2*18 + r5*9 + r3*2 + r6 + -10 if and(and(cmplt(0, r2*2 + r5), cmplt(r2*2 + r5, 10)), and(cmplt(0, r3*2 + r6), cmplt(r3*2 + r6, 10)))]*b1[r1*54 + r4*9 + r5*3 + r6])
)";

constexpr char kScatter[] = R"(buffer b0 float32[320] read
buffer b1 int64[20] read
buffer b2 float32[160] update
stage r0:4 r1:4 order r2:5 r3:4
  b2[b1[r2*4 + r3]%10*16 + r0*4 + r1 if cmplt(r0*4 + r1, 13)] = b2[b1[r2*4 + r3]%10*16 + r0*4 + r1 if cmplt(r0*4 + r1, 13)] + b0[r2*64 + r3*16 + r0*4 + r1]
)";

// Sums of rows, shared by threads, that end where a number says.
constexpr char kRagged[] = R"(buffer b0 int64[6] read
buffer b1 float32[222] read
buffer b2 float32[24] write
buffer b3 int64[1] local
grid r0:6
stage
  b3[0] = b0[r0]%30
stage r1:4 reduce r2:37
  b2[r0*4 + r1] = sum(where(cmplt(r2, b3[0]), b1[r0*37 + r2], 0:float32)*float32(r1 + 1))
)";

// For the product: rows and columns in tiles of 8 x 16, each thread with 2 x 4 of them, 8 terms of
// the sum at a time, both factors in shared memory. The last tiles are shorter.
constexpr char kTiles[] =
    "split 0 8\nsplit 1 16\nsplit 4 2\nsplit 6 4\nsplit 2 8\n"
    "bind 3 task\nbind 5 task\nbind 7 thread\nbind 9 thread\nbind 8 unroll\nbind 10 unroll\n"
    "order 0 3 5 11 7 9 12 8 10\nstage 0 0 11 1 2 0\nstage 0 1 11 1 2 1\n";

constexpr char kShortProduct[] = R"(buffer b0 float16[3072] read
buffer b1 float16[1024] read
buffer b2 float32[768] write
stage r0:48 r1:16 reduce r2:64
  b2[r0*16 + r1] = sum(float32(b0[r0*64 + r2])*float32(b1[r1*64 + r2]))
)";

// 16 rows by 8 columns for a block of 32 threads, 16 terms of the sum at a time.
constexpr char kMatrixAxes[] =
    "split 0 16\nsplit 4 8\nsplit 1 8\nsplit 8 2\nsplit 2 16\nbind 3 task\nbind 7 task\n"
    "bind 6 thread\nbind 9 thread\nbind 5 matrix\nbind 10 matrix\nbind 12 matrix\n"
    "order 0 3 7 11 6 9 5 10 12\n";

std::vector<ThreadCase> MakeCases() {
  const std::vector<std::string> products = {
      "split 0 8\nbind 3 task\nsplit 1 16\nbind 5 task\nbind 4 thread\nbind 6 thread\n"
      "order 0 3 5 4 6 2\n",
      "bind 0 task\nbind 1 thread\n",
      "bind 0 task\nbind 1 task\nsplit 2 8\nbind 4 thread\norder 0 0 1 3 4\n",
      "bind 0 task\nbind 1 task\nsplit 2 4\nsplit 3 4\nbind 6 thread\nbind 4 unroll\npartial 4\n"
      "order 0 0 1 5 6 4\n",
      // Several sums over threads side by side: 5 columns of 4 threads each.
      "bind 0 task\nsplit 1 5\nbind 3 task\nsplit 2 4\nbind 4 thread\nbind 6 thread\n"
      "order 0 0 3 5 4 6\n",
      // Two unrolled columns each.
      "bind 0 task\nsplit 1 10\nbind 3 task\nsplit 4 2\nsplit 2 4\nbind 5 thread\nbind 6 unroll\n"
      "bind 8 thread\norder 0 0 3 7 5 8 6\n",
      // Sums in memory, since a loop is inside the reduction.
      "bind 0 task\nsplit 1 8\nbind 3 thread\nsplit 2 8\norder 0 0 5 3 4 6\n",
      // Each thread's own sums.
      "bind 0 task\nsplit 1 5\nbind 3 thread\norder 0 0 3 2 4\n",
      kTiles,
      // The same, copied a step ahead, with an even and an odd number of steps.
      StrCat(kTiles, "ahead 11\n"),
      // Whole tiles, which include some padding.
      StrCat("pad 0 8\npad 1 16\n", kTiles, "ahead 11\n"),
      "split 0 8\nsplit 2 10\nbind 3 task\nbind 4 thread\norder 0 3 5 4 1 6\n"
      "stage 0 0 5 1 0 2\nstage 0 1 5 2 2 1\nahead 5\n",
      // The number of columns does not divide evenly: the last thread of a tile has fewer.
      "bind 0 task\nsplit 1 16\nsplit 4 3\nbind 3 task\nbind 5 thread\nbind 6 unroll\n"
      "order 0 0 3 2 5 6\n",
      "split 0 8\nbind 4 thread\nbind 3 task\nsplit 2 16\nstage 0 1 5 1 2 1\norder 0 3 5 4 1 6\n",
      "bind 0 task\nbind 1 thread\nstage 0 0 -1 1 2\norder 0 0 1 2\n",
  };
  return {
      {"matmul", Matmul("float32"), products, 2e-5, 32, 25},
      // Any order of the sums gives the same bits.
      {"integers", Matmul("int32"), products, 0, 32, 25},
      {"softmax",
       kSoftmax,
       {"bind 0 task\nsplit 1 16\nbind 6 thread\nsplit 2 16\nbind 8 thread\nsplit 3 16\n"
        "bind 10 thread\nsplit 4 16\nbind 12 thread\n",
        "bind 0 task\nbind 2 thread\nbind 4 thread\n",
        "bind 0 task\nsplit 1 8\nbind 6 thread\nsplit 2 40\nbind 8 thread\nbind 4 thread\n"},
       1e-6,
       30,
       2},
      {"matrix_unit",
       kShortProduct,
       {StrCat(kMatrixAxes, "stage 0 0 11 8 0 2\nstage 0 1 11 8 1 2\n"),
        StrCat(kMatrixAxes, "stage 0 0 11 8 2 0\nstage 0 1 11 8 2 1\nahead 11\n")},
       1e-5,
       8,
       2},
      {"convolution",
       kConvolution,
       {"bind 0 task\nbind 1 task\nbind 2 thread\nbind 3 thread\n",
        "bind 0 task\nbind 1 thread\nbind 2 task\norder 0 0 2 4 1 3 5 6\n"
        "stage 0 0 4 1 5 2*3+1*6\nstage 0 1 4 1 1 5 6\n"},
       1e-5,
       4,
       4},
      {"scatter",
       kScatter,
       {"fuse 0 1\nbind 4 thread\norder 0 4 2 3\n", "bind 0 task\nbind 1 thread\n"},
       0},
      {"ragged",
       kRagged,
       {"bind 0 task\nbind 1 thread\n", "bind 0 task\nsplit 1 2\nbind 4 thread\n",
        "bind 0 task\nbind 1 thread\nsplit 2 4\nbind 4 unroll\npartial 4\norder 1 1 3 4\n"},
       1e-5,
       6},
  };
}

// The first stage runs in one of the second stage's threads.
constexpr char kOneThread[] = R"(buffer b0 float32[9] read
buffer b1 float32[27] read
buffer b2 float32[3] write
buffer b3 float32[32] read
buffer b4 float32[32] write
stage r0:3 reduce r1:9
  b2[r0] = sum(b0[r1]*b1[r1*3 + r0])
stage r2:32
  b4[r2] = b3[r2]
)";

constexpr char kRows[] = R"(buffer b0 float32[320] read
buffer b1 float32[320] read
buffer b2 float32[5] write
stage r0:5 reduce r1:64
  b2[r0] = sum(b0[r0*64 + r1]*b1[r0*64 + r1])
)";

// Overlapping rows, two elements apart.
constexpr char kWindows[] = R"(buffer b0 float16[352] read
buffer b1 float16[512] read
buffer b2 float32[128] write
stage r0:16 r1:8 reduce r2:4 r3:16
  b2[r0*8 + r1] = sum(float32(b0[r3*22 + r0 + r2*2])*float32(b1[r1*64 + r2*16 + r3]))
)";

std::vector<ThreadCase> MakeEmitterCases() {
  return {
      // A thread waits for its own copies.
      {"one_thread", kOneThread, {"bind 2 thread\norder 0 1 0\nstage 0 0 1 1 1\nahead 1\n"}, 1e-5},
      // The same sum over threads inside of a loop and after it.
      {"sums_ahead",
       kRows,
       {"split 1 32\nbind 3 thread\norder 0 0 2 3\nstage 0 0 0 1 1\nahead 0\n"},
       1e-5},
      // Tiles of rows that end early in two ways, each with its own loops.
      {"sums_in_branches",
       Matmul("float32"),
       {"bind 0 task\nsplit 1 16\nsplit 4 3\nbind 3 task\nbind 6 unroll\nsplit 2 4\n"
        "bind 8 thread\norder 0 0 3 7 5 6 8\n"},
       2e-5},
      // Without aligned rows of 16 bytes for a matrix unit.
      {"windows",
       kWindows,
       {"split 0 8\nsplit 1 2\nbind 4 matrix\nbind 5 thread\nbind 6 thread\nbind 7 matrix\n"
        "bind 3 matrix\norder 0 5 6 2 4 7 3\nstage 0 0 -1 8 3 1*0+2*2\nstage 0 1 -1 8 1 2 3\n"},
       1e-5},
  };
}

}  // namespace

const std::vector<ThreadCase>& ThreadCases() {
  static const auto& cases = *new std::vector<ThreadCase>(MakeCases());
  return cases;
}

const std::vector<ThreadCase>& EmitterCases() {
  static const auto& cases = *new std::vector<ThreadCase>(MakeEmitterCases());
  return cases;
}

std::vector<ops::HostTensor> GlobalsOf(const kernel::Kernel& kernel) {
  std::vector<ops::HostTensor> globals;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kGlobal) continue;
    const double low = ir::IsInteger(buffer.dtype) && !ir::IsSigned(buffer.dtype) ? 0 : -2;
    globals.push_back(OperandValue({{buffer.elements}, low, 2, buffer.dtype}, ir::DType::kFloat32,
                                   static_cast<int>(globals.size())));
  }
  return globals;
}

}  // namespace kiln::numerics
