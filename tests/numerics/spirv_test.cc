// Kernels as SPIR-V: run by the driver for Level Zero on a stand-in for its library, they give what
// Kiln's own interpreter gives for the graph; and spirv-val, where it is installed, takes them. By
// hand, with KILN_TEST_OCLOC=dg2 or pvc, Intel's compiler for GPUs compiles them as well.
#include "compiler/codegen/spirv.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/kernel/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/graph_checks.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/run_spirv.h"
#include "tests/numerics/spirv_tools.h"
#include "tests/numerics/split_cases.h"
#include "tests/numerics/thread_cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;

// Which of Intel's GPUs that ocloc knows have float64.
bool HasFloat64(const std::string& device) { return device == "pvc"; }

void ExpectValid(const drivers::KernelImage& image, const drivers::Target& target) {
  if (!FindProgram("spirv-val").empty()) {
    const Checked checked = Validate(image.code);
    EXPECT_EQ(checked.status, 0) << checked.said;
  }
  const char* device = std::getenv("KILN_TEST_OCLOC");
  if (device != nullptr && target.capabilities.fp64 == HasFloat64(device)) {
    const Checked checked = CompileOffline(image.code, device);
    EXPECT_EQ(checked.status, 0) << checked.said;
  }
}

// Say once what the tests below leave out.
TEST(SpirvToolsTest, AreThere) {
  if (FindProgram("spirv-val").empty())
    GTEST_SKIP() << "no spirv-val on $PATH (Debian: spirv-tools): nothing is validated";
  EXPECT_NE(Validate("no module").status, 0);
}
TEST(SpirvRuntimeTest, IsThere) {
  if (!WhyNoSpirvRuns().empty()) GTEST_SKIP() << "nothing is run: " << WhyNoSpirvRuns();
}

RunGraph OnSpirv() {
  return [](const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs) {
    return RunOnSpirv(graph, inputs);
  };
}

class SpirvDTypeTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!WhyNoSpirvRuns().empty()) GTEST_SKIP() << WhyNoSpirvRuns();
  }
};

TEST_P(SpirvDTypeTest, UnaryOps) { ExpectUnaryOpsRight(GetParam(), ClosenessOf, OnSpirv()); }
TEST_P(SpirvDTypeTest, BinaryOps) { ExpectBinaryOpsRight(GetParam(), ClosenessOf, OnSpirv()); }

INSTANTIATE_TEST_SUITE_P(All, SpirvDTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

class SpirvCaseTest : public testing::TestWithParam<TableRow> {};

TEST_P(SpirvCaseTest, EqualsInterpreter) {
  if (!WhyNoSpirvRuns().empty()) GTEST_SKIP() << WhyNoSpirvRuns();
  ExpectRight(GetParam(), OnSpirv());
}

// Also for devices that lack what some GPUs lack.
TEST_P(SpirvCaseTest, IsValid) {
  const auto graph = MakeGraph(GetParam().test_case, GetParam().dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  constexpr drivers::Capabilities kSome[] = {{.fma = true, .fp64 = true, .fp16 = true},
                                             {.fma = true, .fp64 = false, .fp16 = true},
                                             {.fma = true, .fp64 = false, .fp16 = false}};
  for (const drivers::Capabilities& capabilities : kSome) {
    drivers::Target target = SpirvTarget();
    target.capabilities = capabilities;
    const auto program = compiler::Compile(*graph, target, {});
    if (!capabilities.fp64 && absl::IsUnimplemented(program.status())) continue;
    ASSERT_TRUE(program.ok()) << program.status();
    for (const compiler::CompiledKernel& kernel : program->kernels) {
      SCOPED_TRACE(kernel.ir);
      EXPECT_EQ(kernel.refusal, "");
      ExpectValid(kernel.image, target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SpirvCaseTest, testing::ValuesIn(TableRows()),
                         [](const auto& info) { return Name(info.param); });

class SpirvSplitTest : public testing::TestWithParam<Case> {};

TEST_P(SpirvSplitTest, EqualsInterpreter) {
  if (!WhyNoSpirvRuns().empty()) GTEST_SKIP() << WhyNoSpirvRuns();
  ExpectGradientsRight({GetParam(), DType::kFloat32}, OnSpirv());
}

INSTANTIATE_TEST_SUITE_P(All, SpirvSplitTest, testing::ValuesIn(SplitCases()),
                         [](const auto& info) { return info.param.name; });

class SpirvThreadsTest : public testing::TestWithParam<ThreadCase> {};

TEST_P(SpirvThreadsTest, EqualsTheKernel) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(GetParam().kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<ops::HostTensor> expected = GlobalsOf(*kernel);
  std::vector<ops::HostTensor*> pointers;
  for (ops::HostTensor& tensor : expected) pointers.push_back(&tensor);
  ASSERT_EQ(kernel::Interpret(*kernel, pointers), absl::OkStatus());
  for (const std::string& directives : GetParam().schedules) {
    SCOPED_TRACE(directives);
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto image = CompileToSpirv(*kernel, *schedule, SpirvTarget());
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_GT(image->block_size, 1);
    ExpectValid(*image, SpirvTarget());
    if (!WhyNoSpirvRuns().empty()) continue;
    std::vector<ops::HostTensor> actual = GlobalsOf(*kernel);
    std::vector<ops::HostTensor*> run;
    for (ops::HostTensor& tensor : actual) run.push_back(&tensor);
    ASSERT_EQ(RunOnSpirv(*kernel, *schedule, run), absl::OkStatus());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(Difference(actual[i], expected[i], GetParam().tolerance, GetParam().tolerance), "")
          << "buffer " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpirvThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
