#include "compiler/kernel/bounds.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::kernel {
namespace {

using testing::HasSubstr;

constexpr char kBuffers[] =
    "buffer b0 float32[100] read\n"
    "buffer b1 float32[10] write\n"
    "buffer b2 float32[10] local\n"
    "buffer b3 int32[10] read\n";

absl::Status CheckBounds(const std::string& body) {
  ir::Context context;
  const absl::StatusOr<Kernel> kernel = ParseKernel(kBuffers + body, context);
  return kernel.ok() ? VerifyBounds(*kernel, context) : kernel.status();
}

TEST(Bounds, ProvesWhatFits) {
  EXPECT_EQ(CheckBounds("stage r0:10 reduce r1:10\n  b1[r0] = sum(b0[r0*10 + r1])\n"),
            absl::OkStatus());
  EXPECT_EQ(CheckBounds("stage r0:10\n  b1[r0] = b0[r0 - 3 if cmplt(2, r0)]\n"), absl::OkStatus());
}

TEST(Bounds, RefusesWhatDoesNot) {
  const absl::Status load =
      CheckBounds("stage r0:10 reduce r1:11\n  b1[r0] = sum(b0[r0*10 + r1])\n");
  EXPECT_EQ(load.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(load.message()),
              HasSubstr("load of b0[r0*10 + r1] may reach element 100 of 100"));
  EXPECT_THAT(std::string(CheckBounds("stage r0:11\n  b1[r0] = 1:float32\n").message()),
              HasSubstr("store to b1[r0] may reach element 10 of 10"));
  EXPECT_THAT(
      std::string(CheckBounds("stage r0:10\n  b1[r0] = b0[r0 - 3 if cmplt(1, r0)]\n").message()),
      HasSubstr("may reach element -1"));
}

TEST(Bounds, TrustsNoLoadedIndex) {
  EXPECT_FALSE(CheckBounds("stage r0:10\n  b1[r0] = b0[int64(b3[r0])]\n").ok());
  EXPECT_FALSE(
      CheckBounds("stage r0:10\n  b1[r0] = b0[int64(b3[r0]) if cmplt(int64(b3[r0]), 100)]\n").ok());
  EXPECT_EQ(CheckBounds("stage r0:10\n  v0 = int64(b3[r0])\n"
                        "  b1[r0] = b0[v0 if and(cmplt(-1, v0), cmplt(v0, 100))]\n"),
            absl::OkStatus());
}

// Sums of data may wrap. A bound on a sum has its other end from the bounds on its parts, whichever
// come first.
TEST(Bounds, CompletesBoundsOnSumsOfData) {
  ir::Context context;
  const auto check = [&](const std::string& condition) {
    const std::string text =
        "buffer b0 int64[2] read\nbuffer b1 float32[18] read\nbuffer b2 float32[54] write\n"
        "stage r0:9 r1:6\n  v0 = b0[0]\n  v1 = b0[1]\n"
        "  b2[r0*6 + r1] = b1[r0*3 + v0*-3 + r1 + v1*-1 + -1 if " +
        condition + "]\n";
    const absl::StatusOr<Kernel> kernel = ParseKernel(text, context);
    return kernel.ok() ? VerifyBounds(*kernel, context) : kernel.status();
  };
  const std::string whole = "cmplt(0, r0*3 + v0*-3 + r1 + v1*-1)";
  const std::string row = "and(cmplt(-1, r0 + v0*-1), cmplt(r0 + v0*-1, 6))";
  const std::string column = "and(cmplt(-1, r1 + v1*-1), cmplt(r1 + v1*-1, 3))";
  EXPECT_EQ(check("and(and(" + whole + ", " + row + "), " + column + ")"), absl::OkStatus());
  EXPECT_EQ(check("and(and(" + row + ", " + column + "), " + whole + ")"), absl::OkStatus());
  EXPECT_THAT(std::string(check("and(" + row + ", " + column + ")").message()),
              HasSubstr("may reach element -1 of 18"));
  EXPECT_FALSE(check("and(" + whole + ", " + row + ")").ok());
}

std::string ScatterError(const std::string& stage, const std::string& index) {
  ir::Context context;
  const std::string text = "buffer b0 int64[12] read\nbuffer b1 int32[40] update\nstage " + stage +
                           "\n  v0 = b0[r1]\n  b1[" + index +
                           " if and(cmplt(-1, v0), cmplt(v0, 5))] = 1:int32\n";
  const absl::StatusOr<Kernel> kernel = ParseKernel(text, context);
  return std::string((kernel.ok() ? VerifyBounds(*kernel, context) : kernel.status()).message());
}

TEST(Bounds, PointsOfAScatterAreDistinct) {
  EXPECT_EQ(ScatterError("r0:8 order r1:12", "v0*8 + r0"), "");
  EXPECT_EQ(ScatterError("r0:8 order r1:12", "r0*5 + v0"), "");
  EXPECT_THAT(ScatterError("r0:8 order r1:12", "v0*4 + r0"), HasSubstr("at several points"));
  EXPECT_THAT(ScatterError("r0:8 order r1:12", "r0*4 + v0"), HasSubstr("at several points"));
  EXPECT_THAT(ScatterError("r0:8 order r1:12", "v0"), HasSubstr("at several points"));
  EXPECT_THAT(ScatterError("r0:9 order r1:12", "v0*9 + r0"), HasSubstr("may reach element 44"));
}

TEST(Form, OnlyScattersUpdate) {
  EXPECT_THAT(ScatterError("r0:8 r1:12", "v0*8 + r0"),
              HasSubstr("only a scatter updates a buffer"));
  EXPECT_THAT(ScatterError("r0:8 order r1:12 r2:1\n  b1[r0] = 0:int32", "v0*8 + r0"),
              HasSubstr("one store"));
  ir::Context context;
  const std::string text =
      "buffer b0 int32[8] update\nstage order r0:8\n  b0[r0] = b0[r0 - 1 if cmplt(0, r0)]\n";
  EXPECT_THAT(std::string(ParseKernel(text, context).status().message()),
              HasSubstr("more than the element"));
}

std::string FormError(const std::string& body) {
  ir::Context context;
  return std::string(ParseKernel(kBuffers + body, context).status().message());
}

TEST(Form, RefusesWhatIsNoKernel) {
  EXPECT_THAT(FormError("stage r0:10\n  b0[r0] = 1:float32\n"), HasSubstr("writes to an input"));
  EXPECT_THAT(FormError("stage r0:10\n  b1[r0] = 1:int32\n"),
              HasSubstr("is not that of its buffer"));
  EXPECT_THAT(FormError("stage r0:10\n  b1[r0] = b2[r0]\n"), HasSubstr("before it is written"));
  EXPECT_THAT(FormError("stage r0:10\n  b1[r0] = b1[r0]\n"), HasSubstr("written and read"));
  EXPECT_THAT(FormError("stage r0:10 reduce r1:4\n  b1[r0] = b0[r1]\n"),
              HasSubstr("outside of its reductions"));
  EXPECT_THAT(FormError("stage r0:10\nstage r1:10\n  b1[r1] = 1:float32\n"),
              HasSubstr("stores nothing"));
  EXPECT_THAT(FormError("stage r0:10\n  b1[r0] = 1:float32\nstage r1:10\n  b1[r0] = 1:float32\n"),
              HasSubstr("out of scope"));
}

}  // namespace
}  // namespace kiln::kernel
