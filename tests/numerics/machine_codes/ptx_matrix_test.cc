// Contractions that the compiler assigns to matrix units: the PTX contains their instructions, and
// its interpreter gives the kernel's results.
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/graph/round_factors.h"
#include "compiler/kernel/text.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
using ::testing::HasSubstr;

struct MatrixCase {
  std::string name;
  const char* dtype = "float16";
  int rows = 0;
  int columns = 0;
  int terms = 0;
  // True: the factor is stored with the terms outermost.
  bool transposed[2] = {false, true};
  std::string result = "float32";
  // Operations on each sum; many of them are loops over the sums of a thread.
  int operations = 0;
  // The factors are float32 in memory, and rounded to `dtype`.
  bool rounds = false;
};

std::string Factor(const MatrixCase& at, int number, const std::string& range, int extent) {
  const std::string index = at.transposed[number] ? absl::StrCat("r3*", extent, " + ", range)
                                                  : absl::StrCat(range, "*", at.terms, " + r3");
  std::string load = absl::StrCat("b", number, "[r0*", extent * at.terms, " + ", index, "]");
  if (at.rounds) load = absl::StrCat(at.dtype, "(", load, ")");
  if (std::string(at.dtype) != "float32") return absl::StrCat("float32(", load, ")");
  // Rounded to tf32: the 13 lowest bits are 0.
  return absl::StrCat("bitcast_float32(and(add(bitcast_uint32(", load,
                      "), 4096:uint32), 4294959104:uint32))");
}

std::string KernelOf(const MatrixCase& at) {
  const int batch = 2;
  std::string sum =
      absl::StrCat("sum(", Factor(at, 0, "r1", at.rows), "*", Factor(at, 1, "r2", at.columns), ")");
  for (int i = 0; i < at.operations; i += 2) {
    sum = absl::StrCat("(", sum, "*0.75:float32 + 0.125:float32)");
  }
  const std::string memory = at.rounds ? "float32" : at.dtype;
  return absl::StrCat("buffer b0 ", memory, "[", batch * at.rows * at.terms, "] read\nbuffer b1 ",
                      memory, "[", batch * at.columns * at.terms, "] read\nbuffer b2 ", at.result,
                      "[", batch * at.rows * at.columns, "] write\nstage r0:", batch,
                      " r1:", at.rows, " r2:", at.columns, " reduce r3:", at.terms, "\n  b2[r0*",
                      at.rows * at.columns, " + r1*", at.columns, " + r2] = ",
                      at.result == "float32" ? sum : absl::StrCat(at.result, "(", sum, ")"), "\n");
}

void PrintTo(const MatrixCase& at, std::ostream* out) { *out << at.name; }

class PtxMatrixTest : public testing::TestWithParam<MatrixCase> {};

TEST_P(PtxMatrixTest, EqualsTheKernel) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(KernelOf(GetParam()), context);
  ASSERT_TRUE(kernel.ok()) << kernel.status() << KernelOf(GetParam());
  const drivers::Target target = PtxTarget();
  const schedule::Schedule schedule = ChooseForTarget(*kernel, target);
  SCOPED_TRACE(schedule::Print(schedule));
  const auto image = CompileForTarget(*kernel, schedule, target);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->code, HasSubstr("mma.sync.aligned.m16n8k"));
  const double tolerance = GetParam().result == "float32" ? 1e-5 : 1e-2;
  EXPECT_EQ(Disagreement(Ptx(), *kernel, *image, target, tolerance), "");
}

struct PrecisionCase {
  std::string name;
  Case test_case;
  // The minimum number of kernels with sums on matrix units: the result's only, or each gradient's
  // as well.
  size_t kernels = 1;
};

void PrintTo(const PrecisionCase& at, std::ostream* out) { *out << at.name; }

std::string Code(const graph::Graph& graph, size_t* matrix_kernels) {
  const auto program = compiler::Compile(graph, PtxTarget(), {});
  EXPECT_TRUE(program.ok()) << program.status();
  std::string text;
  *matrix_kernels = 0;
  for (const compiler::CompiledKernel& kernel : program->kernels) {
    EXPECT_EQ(kernel.refusal, "");
    absl::StrAppend(&text, kernel.ir, "\n");
    *matrix_kernels += absl::StrContains(kernel.image.code, ".f32.tf32.tf32.f32") ? 1 : 0;
  }
  return text;
}

// A factor that is constant along the sum, but after a border of zeros: if the sum is padded, the
// factor is zero there as well, so that no infinity is multiplied by zero.
TEST(PtxMatrixGraphTest, PaddedSumsOfInfinitiesAreInfinite) {
  using ir::DType;
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  graph.inputs = {{DType::kFloat16, {32, 1}}, {DType::kFloat16, {40, 32}}};
  ops::Builder b(*graph.context);
  const ir::Node* rows =
      b.Pad(b.Expand(b.Input(0, DType::kFloat16, {32, 1}), {32, 37}), {0, 0, 3, 0});
  const ir::Node* columns = b.Input(1, DType::kFloat16, {40, 32});
  const ir::Node* left =
      b.Expand(b.Reshape(b.Cast(rows, DType::kFloat32), {32, 40, 1}), {32, 40, 32});
  const ir::Node* right =
      b.Expand(b.Reshape(b.Cast(columns, DType::kFloat32), {1, 40, 32}), {32, 40, 32});
  graph.outputs = {b.Sum(b.Mul(left, right), {1})};
  std::vector<HostTensor> inputs = {
      OperandValue({{32, 1}, 1, 2, DType::kFloat16}, DType::kFloat16, 0),
      OperandValue({{40, 32}, 1, 2, DType::kFloat16}, DType::kFloat16, 1)};
  inputs[0].SetFloat(3, std::numeric_limits<double>::infinity());
  size_t kernels = 0;
  SCOPED_TRACE(Code(graph, &kernels));
  const auto expected = ops::Evaluate(graph.outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = On(Ptx())(graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(Difference(actual->outputs[0], (*expected)[0], 1e-5, 1e-5), "");
}

// All six sums of products of attention and its gradients: scores, results, and the gradients of
// weights, values, queries and keys.
TEST(PtxMatrixGraphTest, AttentionOfShortFloatsIsOnMatrixUnits) {
  Case attention;
  attention.op = "scaled_dot_product_attention";
  attention.operands = {{{2, 32, 16}}, {{2, 48, 16}}, {{2, 48, 24}}};
  for (const ir::DType dtype : {ir::DType::kFloat16, ir::DType::kBFloat16}) {
    const auto graph = MakeGradientGraph(attention, dtype, /*differentiate=*/true);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto program = compiler::Compile(*graph, PtxTarget(), {});
    ASSERT_TRUE(program.ok()) << program.status();
    int on_units = 0;
    for (const compiler::CompiledKernel& kernel : program->kernels) {
      EXPECT_EQ(kernel.refusal, "");
      on_units += absl::StrContains(kernel.image.code, "mma.sync") ? 1 : 0;
    }
    EXPECT_EQ(on_units, 6) << ir::Name(dtype);
    std::vector<HostTensor> inputs = OperandValues(attention, dtype);
    inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, dtype, 9));
    const auto expected = ops::Evaluate(graph->outputs, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = On(Ptx())(*graph, inputs);
    ASSERT_TRUE(actual.ok()) << actual.status();
    // A sum in another order may be rounded to the neighbouring short float.
    const double tolerance = dtype == ir::DType::kFloat16 ? 2e-3 : 2e-2;
    for (size_t i = 0; i < expected->size(); ++i) {
      EXPECT_EQ(Difference(actual->outputs[i], (*expected)[i], tolerance, tolerance), "")
          << "output " << i << " of " << ir::Name(dtype);
    }
  }
}

class PtxPrecisionTest : public testing::TestWithParam<PrecisionCase> {};

// float32 with "high" precision, as requested by a client.
TEST_P(PtxPrecisionTest, FactorsRoundedToTf32AreOnMatrixUnits) {
  const Case& test_case = GetParam().test_case;
  auto graph = MakeGradientGraph(test_case, ir::DType::kFloat32, /*differentiate=*/true);
  ASSERT_TRUE(graph.ok()) << graph.status();
  size_t kernels = 0;
  SCOPED_TRACE(Code(*graph, &kernels));
  EXPECT_EQ(kernels, 0u);
  graph->float32_matmul_precision = graph::MatmulPrecision::kHigh;
  SCOPED_TRACE(Code(*graph, &kernels));
  EXPECT_GE(kernels, GetParam().kernels);
  std::vector<HostTensor> inputs = OperandValues(test_case, ir::DType::kFloat32);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, ir::DType::kFloat32, 9));
  const auto expected = ops::Evaluate(graph::RoundFactors(*graph).outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = On(Ptx())(*graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference(actual->outputs[i], (*expected)[i], 1e-5, 1e-5), "") << "output " << i;
  }
}

std::vector<PrecisionCase> PrecisionCases() {
  Case matmul;
  matmul.op = "matmul";
  matmul.operands = {{{64, 32}}, {{32, 48}}};
  Case batched = matmul;
  batched.operands = {{{2, 32, 32}}, {{2, 32, 32}}};
  Case convolution;
  convolution.op = "conv2d";
  convolution.operands = {{{2, 16, 18, 18}}, {{16, 16, 3, 3}}};
  return {{"matmul", matmul, 3}, {"batched", batched, 3}, {"convolution", convolution, 1}};
}

INSTANTIATE_TEST_SUITE_P(All, PtxPrecisionTest, testing::ValuesIn(PrecisionCases()),
                         [](const auto& info) { return info.param.name; });

std::vector<MatrixCase> MatrixCases() {
  std::vector<MatrixCase> cases;
  for (const char* dtype : {"float16", "bfloat16", "float32"}) {
    for (const bool left : {false, true}) {
      for (const bool right : {false, true}) {
        MatrixCase one{absl::StrCat(dtype, left ? "_t" : "_n", right ? "t" : "n"),
                       dtype,
                       64,
                       48,
                       96,
                       {left, right}};
        cases.push_back(one);
      }
    }
    cases.push_back({absl::StrCat(dtype, "_large"), dtype, 256, 128, 64});
    cases.push_back({absl::StrCat(dtype, "_small"), dtype, 16, 8, 16});
    cases.push_back({absl::StrCat(dtype, "_narrow"), dtype, 128, 8, 32});
    // Padded to whole tiles: odd sizes, and sizes that end with whole vectors.
    for (const bool across : {false, true}) {
      const char* way = across ? "_across" : "_along";
      cases.push_back({absl::StrCat(dtype, "_odd", way), dtype, 50, 57, 48, {across, across}});
      cases.push_back({absl::StrCat(dtype, "_ragged", way), dtype, 72, 40, 64, {across, across}});
      cases.push_back({absl::StrCat(dtype, "_few", way), dtype, 9, 5, 32, {across, across}});
      cases.push_back(
          {absl::StrCat(dtype, "_odd_terms", way), dtype, 32, 24, 37, {across, across}});
      cases.push_back({absl::StrCat(dtype, "_all_odd", way), dtype, 33, 21, 75, {across, across}});
    }
  }
  cases.push_back({"odd_short_result", "float16", 33, 65, 64, {false, true}, "float16"});
  cases.push_back({"short_result", "float16", 64, 64, 64, {false, true}, "float16"});
  cases.push_back({"long_epilogue", "bfloat16", 256, 128, 64, {}, "bfloat16", 40});
  cases.push_back({"odd_long_epilogue", "bfloat16", 250, 127, 64, {}, "float32", 40});
  for (const char* dtype : {"float16", "bfloat16"}) {
    cases.push_back({absl::StrCat(dtype, "_rounded"), dtype, 64, 48, 96, {}, "float32", 0, true});
    cases.push_back({absl::StrCat(dtype, "_rounded_odd"),
                     dtype,
                     33,
                     21,
                     75,
                     {true, false},
                     "float32",
                     0,
                     true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, PtxMatrixTest, testing::ValuesIn(MatrixCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
