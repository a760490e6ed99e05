// From the kernel's nodes to numbers: exp and log in the form of clients' graphs.
#include "compiler/codegen/math/composite.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/testing/executable_code.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/machine_codes.h"
#include "gtest/gtest.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;
using Kind = MathComposite::Kind;

class MathCompositeTest : public testing::Test {
 protected:
  KernelWriter::Expression X(DType dtype = DType::kFloat32) {
    return w_.Make(Op::kLoad, dtype, {w_.Int(0).node}, ir::IntAttr{0});
  }
  KernelWriter::Expression Constant(double value, DType dtype = DType::kFloat32) {
    return w_.Number(dtype, dtype == DType::kFloat32 ? static_cast<float>(value) : value);
  }

  ir::Context context_;
  KernelWriter w_{context_};
};

TEST_F(MathCompositeTest, FindsExpAndLog) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    auto x = X(dtype);
    auto match = MatchComposite((x * Constant(std::numbers::log2e, dtype)).Unary(Op::kExp2).node);
    ASSERT_TRUE(match.has_value());
    EXPECT_EQ(match->kind, Kind::kExp);
    EXPECT_EQ(match->argument, x.node);
    match = MatchComposite((Constant(-std::numbers::log2e, dtype) * x).Unary(Op::kExp2).node);
    ASSERT_TRUE(match.has_value());
    EXPECT_EQ(match->kind, Kind::kExpOfMinus);
    match = MatchComposite((x.Unary(Op::kLog2) * Constant(std::numbers::ln2, dtype)).node);
    ASSERT_TRUE(match.has_value());
    EXPECT_EQ(match->kind, Kind::kLog);
    EXPECT_EQ(match->argument, x.node);
  }
}

TEST_F(MathCompositeTest, FindsCosine) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    auto x = X(dtype);
    auto sine = (x * Constant(0.5, dtype)).Unary(Op::kSin);
    auto match = MatchComposite((sine * sine * Constant(-2, dtype) + Constant(1, dtype)).node);
    ASSERT_TRUE(match.has_value());
    EXPECT_EQ(match->kind, Kind::kCos);
    EXPECT_EQ(match->argument, x.node);
    EXPECT_FALSE(MatchComposite((sine * sine * Constant(2, dtype) + Constant(1, dtype)).node));
    EXPECT_FALSE(MatchComposite((sine * x * Constant(-2, dtype) + Constant(1, dtype)).node));
  }
}

TEST_F(MathCompositeTest, LeavesTheRestAlone) {
  auto x = X();
  EXPECT_FALSE(MatchComposite(x.Unary(Op::kExp2).node).has_value());
  EXPECT_FALSE(MatchComposite((x * Constant(1.44269)).Unary(Op::kExp2).node).has_value());
  EXPECT_FALSE(
      MatchComposite((x + Constant(std::numbers::log2e)).Unary(Op::kExp2).node).has_value());
  EXPECT_FALSE(MatchComposite((x * Constant(std::numbers::ln2)).node).has_value());
  EXPECT_FALSE(MatchComposite((x.Unary(Op::kLog2) * Constant(0.5)).node).has_value());
}

// Returns f(x) for 2000 arguments, compiled with vectors of any width and with scalars.
std::vector<float> Compute(const std::vector<float>& x, bool logarithm) {
  ir::Context context;
  KernelWriter w(context);
  const int64_t count = x.size();
  const int in = w.In(count), out = w.Out(count);
  auto i = w.Range(count);
  w.Stage({i});
  auto value = w.Load(in, i);
  auto log2e = w.Float(static_cast<float>(std::numbers::log2e));
  auto ln2 = w.Float(static_cast<float>(std::numbers::ln2));
  w.Store(out, i, logarithm ? value.Unary(Op::kLog2) * ln2 : (value * log2e).Unary(Op::kExp2));
  drivers::Target target;
  target.architecture = "x86-64";
  target.processor = "x86-64-v2";
  auto image =
      CompileKernel(**compiler::FindMachineCode(target.architecture), w.kernel, {}, target);
  EXPECT_TRUE(image.ok()) << image.status();
  AlignedMemory from(count * 4), to(count * 4);
  std::memcpy(from.data(), x.data(), count * 4);
  void* arguments[] = {from.data(), to.data()};
  ExecutableCode(*image).Run(arguments, 0, image->grid_size, nullptr);
  const auto* y = static_cast<const float*>(to.data());
  return {y, y + count};
}

TEST_F(MathCompositeTest, LargeArgumentsKeepTheirDigits) {
  std::vector<float> x;
  for (int i = 0; i < 2000; ++i) x.push_back(-87.0f + 0.087f * i);
  const std::vector<float> exponentials = Compute(x, false);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(exponentials[i] / want, 1, 1.2e-7) << x[i];
  }
  const std::vector<float> logarithms = Compute(exponentials, true);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::log(static_cast<double>(exponentials[i]));
    ASSERT_NEAR(logarithms[i], want, 1.2e-7 * std::fabs(want) + 1e-12) << exponentials[i];
  }
}

}  // namespace
}  // namespace kiln::codegen
