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

std::string FormError(const std::string& body) {
  ir::Context context;
  return std::string(ParseKernel(kBuffers + body, context).status().message());
}

TEST(Form, RefusesWhatIsNoKernel) {
  EXPECT_THAT(FormError("stage r0:10\n  b0[r0] = 1:float32\n"), HasSubstr("goes to an input"));
  EXPECT_THAT(FormError("stage r0:10\n  b1[r0] = 1:int32\n"), HasSubstr("buffer's dtype"));
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
