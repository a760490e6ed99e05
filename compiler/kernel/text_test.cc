#include "compiler/kernel/text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::kernel {
namespace {

using testing::HasSubstr;

constexpr char kRows[] =
    "buffer b0 float32[32] read\n"
    "buffer b1 float32[32] write\n"
    "buffer b2 float32[1] local\n"
    "grid r0:4\n"
    "stage reduce r1:8\n"
    "  b2[0] = max(b0[r0*8 + r1])\n"
    "stage r2:8\n"
    "  v0 = b0[r0*8 + r2] - b2[0]\n"
    "  b1[r0*8 + r2] = where(cmplt(v0, 0.5:float32), exp2(v0), v0*(v0 - 1:float32))\n";

TEST(KernelText, ReadsBack) {
  ir::Context context;
  const absl::StatusOr<Kernel> kernel = ParseKernel(kRows, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(Print(*kernel), kRows);
}

constexpr char kScatter[] =
    "buffer b0 float32[96] read\n"
    "buffer b1 int32[12] read\n"
    "buffer b2 float32[40] update\n"
    "stage r0:8 order r1:12\n"
    "  v0 = int64(b1[r1])\n"
    "  b2[v0*8 + r0 if and(cmplt(-1, v0), cmplt(v0, 5))] = "
    "b2[v0*8 + r0 if and(cmplt(-1, v0), cmplt(v0, 5))] + b0[r1*8 + r0]\n";

TEST(KernelText, ScattersReadBack) {
  ir::Context context;
  const absl::StatusOr<Kernel> kernel = ParseKernel(kScatter, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::string text = Print(*kernel);
  const absl::StatusOr<Kernel> back = ParseKernel(text, context);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Print(*back), text);
  EXPECT_THAT(text, HasSubstr("buffer b2 float32[40] update\nstage r0:8 order r1:12\n"));
}

TEST(KernelText, LongIndicesThatAreSharedGetNames) {
  ir::Context context;
  const ir::Node* r = context.Get(ir::Op::kRange, ir::DType::kInt64, {}, {}, ir::RangeAttr{0, 8});
  const ir::Node* value = r;
  for (int i = 0; i < 60; ++i) {
    value = context.Get(ir::Op::kMul, ir::DType::kInt64, {}, {value, value});
  }
  Kernel kernel;
  kernel.buffers = {{ir::DType::kInt64, 8, Memory::kGlobal, Access::kWrite}};
  kernel.stages = {{{r}, {}, {{0, r, value, nullptr}}}};
  const std::string text = Print(kernel);
  EXPECT_LT(text.size(), 20000);
  EXPECT_THAT(text, HasSubstr(" = v0*v0"));
  const absl::StatusOr<Kernel> back = ParseKernel(text, context);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Print(*back), text);
}

TEST(KernelText, DoesNotDependOnRangeIdsOrContext) {
  ir::Context context;
  for (int i = 0; i < 5; ++i)
    context.Get(ir::Op::kRange, ir::DType::kInt64, {}, {}, ir::RangeAttr{i, 3});
  auto range = [&](int64_t id, int64_t extent) {
    return context.Get(ir::Op::kRange, ir::DType::kInt64, {}, {}, ir::RangeAttr{id, extent});
  };
  auto make = [&](int64_t id) {
    Kernel kernel;
    kernel.buffers = {{ir::DType::kFloat32, 8, Memory::kGlobal, Access::kRead},
                      {ir::DType::kFloat32, 8, Memory::kGlobal, Access::kWrite}};
    const ir::Node* r = range(id, 8);
    const ir::Node* load = context.Get(ir::Op::kLoad, ir::DType::kFloat32, {}, {r}, ir::IntAttr{0});
    kernel.stages = {{{r}, {}, {{1, r, load, nullptr}}}};
    return Print(kernel);
  };
  EXPECT_EQ(make(10), make(77));
}

TEST(KernelText, ConstantsKeepTheirBits) {
  ir::Context context;
  for (const double value : {0.1, -0.0, 1e300, 5e-324, std::numeric_limits<double>::infinity()}) {
    const ir::Node* constant =
        context.Get(ir::Op::kConst, ir::DType::kFloat64, {}, {}, ir::ConstValue::Float(value));
    const std::string text =
        "buffer b0 float64[1] write\nstage\n  b0[0] = " + PrintExpression(constant) + "\n";
    const absl::StatusOr<Kernel> kernel = ParseKernel(text, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(kernel->stages[0].stores[0].value, constant) << text;
  }
}

std::string Error(const std::string& text) {
  ir::Context context;
  return std::string(ParseKernel(text, context).status().message());
}

TEST(KernelText, SaysWhatIsWrong) {
  const std::string buffer = "buffer b0 float32[8] write\n";
  EXPECT_THAT(Error("buffer b1 float32[8] write\n"), HasSubstr("line 1: expected \"b0\""));
  EXPECT_THAT(Error("buffer b0 float31[8] write\n"), HasSubstr("no dtype \"float31\""));
  EXPECT_THAT(Error(buffer + "  b0[0] = 1:float32\n"), HasSubstr("outside of a stage"));
  EXPECT_THAT(Error(buffer + "stage r0:0\n"), HasSubstr("line 2: a range must have"));
  EXPECT_THAT(Error(buffer + "stage r0:8\n  b0[r0] = 1:float32 + 1\n"), HasSubstr("two dtypes"));
  EXPECT_THAT(Error(buffer + "stage r0:8\n  b0[r0] = frob(1:float32)\n"),
              HasSubstr("no function \"frob\""));
  EXPECT_THAT(Error(buffer + "stage r0:8\n  b0[r7] = 1:float32\n"), HasSubstr("\"r7\" is unknown"));
  EXPECT_THAT(Error(buffer + "stage r0:8\n  b0[r0] = " + std::string(5000, '(') + "\n"),
              HasSubstr("too deep"));
}

}  // namespace
}  // namespace kiln::kernel
