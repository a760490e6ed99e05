// Loops that end where a number in memory says that nothing is left to do, and loops that only look
// like it: compiled, proved and compared with the interpreter.
#include <gtest/gtest.h>

#include "compiler/ir/str_cat.h"
#include "tests/numerics/kernels/kernel_check.h"

namespace kiln::codegen {
namespace {

class ShortenTest : public KernelsTest {};

// Every form of a masked reduction ends where its terms do.
TEST_F(ShortenTest, MaskedReductionsEndWhereTheirTermsDo) {
  for (const char* value : {
           "sum(where(cmplt(r0, b0[0]%90), b1[r0], 0:float32)*b2[r0])",
           "sum(b2[r0]*where(cmplt(r0, b0[0]%90), b1[r0], 0:float32))",
           "sum(b1[r0 if cmplt(r0, b0[0]%90)])",
           "sum(where(and(cmplt(r0, b0[0]%90), cmplt(0:int64, r0)), b1[r0], 0:float32))",
           "sum(where(and(cmplt(0:int64, r0), cmplt(r0, b0[0]%90)), b1[r0], 0:float32))",
           "prod(where(cmplt(r0, b0[0]%90), b1[r0], 1:float32))",
           "max(where(cmplt(r0, b0[0]%90), b1[r0], -inf:float32))",
           "sum(float32(int32(where(cmplt(r0, b0[0]%90), b1[r0], 0:float32))))",
           "sum(where(cmplt(r0*2, b0[0]%90 + 3), b1[r0], 0:float32))",
           "sum(where(cmplt(r0, b0[0]%90), b1[r0], 0:float32)*"
           "where(cmplt(r0, b0[0]%60), b2[r0], 0:float32))",
           "sum(b1[r0 if cmplt(r0, 50)]*b2[r0 if cmplt(r0, b0[0]%90)])",
           "sum(where(and(cmplt(r0, 50), cmplt(2:int64, r0)), b1[r0], 0:float32)*"
           "where(cmplt(r0, b0[0]%90), b2[r0], 0:float32))",
           // These do not: ones are still multiplied, and positions are not in order.
           "sum(where(cmplt(r0, b0[0]%90), b1[r0], 1:float32)*b2[r0])",
           "sum(where(cmplt(r0 + r0%3*-7, b0[0]%90), b1[r0], 0:float32))",
       }) {
    const std::string kernel = StrCat(R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[100] read
buffer b3 float32[1] write
stage reduce r0:100
  b3[0] = )",
                                      value, "\n");
    for (const char* directives : {"", "split 0 8\n", "split 0 8\npartial 2\nbind 2 unroll\n",
                                   "split 0 16\nbind 2 vector\n"}) {
      ExpectRight(kernel, directives, 1e-3);
    }
  }
}

// So does each block of a long sum, and the loop over blocks.
TEST_F(ShortenTest, BlocksOfLongSumsEndToo) {
  for (const char* end : {"b0[0]%6400", "b0[0]%3", "b0[0]%1"}) {
    const std::string kernel = StrCat(R"(buffer b0 int64[1] read
buffer b1 float32[6401] read
buffer b2 float32[2] write
stage r0:2 reduce r1:6401
  b2[r0] = sum(where(cmplt(r1 + r0, )",
                                      end, "), b1[r1], 0:float32))\n");
    for (const char* directives : {"", "split 1 100\n", "split 1 16\nbind 3 vector\n",
                                   "order 0 1 0\n", "split 1 3000\norder 0 2 0 3\n"}) {
      ExpectRight(kernel, directives, 1e-3);
    }
  }
}

// A scatter writes each of its elements, even if the added value is masked.
TEST_F(ShortenTest, ScattersAddWhatIsMaskedToo) {
  const auto kernel = kernel::ParseKernel(R"(buffer b0 int32[3] read
buffer b1 float64[8] read
buffer b2 float64[36] update
stage r0:3 r1:6 order r2:3
  v0 = int64(b0[r2])
  v1 = cmplt(-1, v0)
  v2 = cmplt(v0, 2)
  v3 = and(v1, v2)
  b2[r0*12 + v0*6 + r1 if v3] = b2[r0*12 + v0*6 + r1 if v3] + b1[r0*12 + v0*6 + r1 + -25 if and(and(and(cmplt(24, r0*12 + v0*6 + r1), v1), v2), cmplt(r0*12 + v0*6 + r1, 33))]
)",
                                          context_);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ExpectAllMatch(*kernel, 1e-12, "a masked scatter", /*specials=*/true);
  ExpectMatches(*kernel, *schedule::Parse("split 1 2\nbind 4 vector\norder 0 0 2 3 4\n"),
                HostTarget(), InterpretKernel(*kernel, /*specials=*/true), 1e-12,
                "a masked scatter by pairs");
}

// Loops that look as if they could end early, and the work that they would omit.
TEST_F(ShortenTest, LoopsThatMustNotEndEarly) {
  // A local's other half is copied, no matter what is added to it.
  ExpectRight(R"(buffer b0 int64[1] read
buffer b1 float32[8] read
buffer b2 float32[8] write
buffer b3 float32[8] local
stage r0:8
  b3[r0] = b1[r0]
stage r1:4
  b3[r1] = b3[r1 + 4] + where(cmplt(r1, b0[0]%4), b1[r1], 0:float32)
stage r2:8
  b2[r2] = b3[r2]
)",
              "");
  // The limit grows while the loop runs; the limit is a sum.
  ExpectRight(R"(buffer b0 int64[1] update
stage order r0:40
  b0[0] = b0[0] + where(cmplt(r0, b0[0]*3), 1:int64, 0:int64)
)",
              "");
  ExpectRight(R"(buffer b0 int64[16] read
buffer b1 int64[20] write
stage r0:20 reduce r1:16
  b1[r0] = where(cmplt(r0, sum(b0[r1]%2)), 3:int64, 5:int64)
)",
              "split 1 16\nbind 3 vector\norder 0 0 2 3\n");
  // Only stores with the condition end early.
  const char stores[] = R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[100] write
stage r0:100
  b2[r0 if cmplt(r0, b0[0]%90)] = b1[r0]
)";
  for (const char* directives : {"", "split 0 8\n", "split 0 16\nbind 2 vector\n"}) {
    ExpectRight(stores, directives);
  }
  for (const char* value : {"b1[r0]", "b1[r0] + where(cmplt(r0, b0[0]%90), b1[r0], 0:float32)",
                            "where(cmplt(r0, b0[0]%90), b1[r0], 0:float32)",
                            "exp2(b1[r0]) + where(cmplt(r0, b0[0]%90), b1[r0], 0:float32)",
                            "b1[r0 if cmplt(r0, 60)] + b1[r0 if cmplt(r0, b0[0]%90)]"}) {
    for (const char* first : {"r0 if cmplt(r0, 70)", "r0"}) {
      for (const char* second : {"r0 if cmplt(r0, b0[0]%90)", "r0"}) {
        ExpectRight(StrCat(R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[100] write
buffer b3 float32[100] write
stage r0:100
  b2[)",
                           first, "] = ", value, "\n  b3[", second, "] = ", value, "\n"),
                    "");
      }
    }
  }
  // A value that an inner loop reads is not a limit for the outer one.
  for (const char* condition : {"cmplt(r0, b0[0] + b3[r1])", "cmplt(r0 + b3[r1], b0[0])"}) {
    ExpectRight(StrCat(R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[1] write
buffer b3 int64[7] read
stage reduce r0:100 r1:7
  b2[0] = sum(where()",
                       condition, ", b1[r0], 0:float32))\n"),
                "", 1e-3);
  }
}

// Limits near the largest number: adding one must not overflow to the smallest.
TEST_F(ShortenTest, LimitsBeyondAllNumbers) {
  for (const char* condition : {
           "cmplt(r0, b0[0]%2 + 9223372036854775806)",
           "cmplt(r0 + -3, b0[0]%2 + 9223372036854775806)",
           "cmplt(r0*2, b0[0]%2 + 9223372036854775806)",
           "cmplt(r0 - r1*5, b0[0]%2 + 9223372036854775806)",
           "cmplt(r0, b0[0]%2 + -9223372036854775808)",
           "cmplt(r0 + 3, b0[0]%2 + -9223372036854775807)",
           "cmplt(r0*2 + r1*5, b0[0]%2 + -9223372036854775807)",
           "cmplt(r0 + 9223372036854775807, b0[0]%2 + 2305843009213693952)",
           "cmplt(r0*2305843009213693953, b0[0]%2 + 5)",
           // Nothing is known about these.
           "cmplt(r0, xor(b0[0]%1, 9223372036854775807))",
           "cmplt(r0 + -3, xor(b0[0]%1, 9223372036854775807))",
           "cmplt(r0*2 + r1, xor(b0[0]%1, 9223372036854775807))",
           "cmplt(r0 + xor(b0[0]%1, -9223372036854775808)*-1, 7)",
           "cmplt(r0 + xor(b0[0]%1, 9223372036854775807), 7)",
           "cmplt(7:int64, xor(b0[0]%1, -9223372036854775808) - r0)",
           "cmplt(r0, xor(b0[0]%1, 4611686018427387904)*2)",
           "cmplt(r0 + -1, xor(b0[0]%1, 40)*4611686018427387904)",
           "cmplt(r0*2, xor(b0[0]%1, 40) + 3)",
       }) {
    const std::string kernel = StrCat(R"(buffer b0 int64[1] read
buffer b1 float32[100] read
buffer b2 float32[1] write
stage reduce r0:100 r1:3
  b2[0] = sum(where()",
                                      condition, ", b1[r0], 0:float32))\n");
    for (const char* directives : {"", "split 0 8\npartial 3\nbind 3 unroll\norder 0 2 1 3\n",
                                   "split 0 16\nbind 3 vector\norder 0 2 1 3\n"}) {
      ExpectRight(kernel, directives, 1e-3);
    }
  }
}

// The compiler tries only a few of many conditions that could end a loop.
TEST_F(ShortenTest, MoreConditionsThanAreTried) {
  std::string value = "b1[r0]";
  for (int i = 0; i < 12; ++i) {
    value = StrCat("where(cmplt(r0, b0[", i, "]%90), ", value, ", 0:float32)");
  }
  ExpectRight(StrCat(R"(buffer b0 int64[12] read
buffer b1 float32[100] read
buffer b2 float32[1] write
stage reduce r0:100
  b2[0] = sum()",
                     value, ")\n"),
              "", 1e-3);
}

}  // namespace
}  // namespace kiln::codegen
