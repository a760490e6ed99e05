// Kernels as code objects for AMD's GPUs: their twins for the host give what Kiln's interpreter
// gives for the graph; and LLVM writes them for each generation of GPUs, with descriptors and
// metadata that say what the image says, and instructions that its disassembler knows. Where LLVM's
// tools are installed, they read them, too.
#include "compiler/codegen/amdgcn.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/kernel/text.h"
#include "compiler/machine_codes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/graph_checks.h"
#include "tests/numerics/llvm_tools.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/run_amdgcn.h"
#include "tests/numerics/split_cases.h"
#include "tests/numerics/thread_cases.h"
#include "tests/stand_ins/hsa/object/code_object.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ::testing::HasSubstr;
using ::testing::Not;

struct Gpu {
  const char* processor;
  int wave;
};
constexpr Gpu kGpus[] = {{"gfx90a", 64},  {"gfx942", 64},  {"gfx1030", 32}, {"gfx1030", 64},
                         {"gfx1100", 32}, {"gfx1100", 64}, {"gfx1201", 32}, {"gfx1201", 64}};

drivers::Target TargetOf(const Gpu& gpu) { return AmdgcnTarget(gpu.processor, gpu.wave); }

void ExpectWhole(const drivers::KernelImage& image, const drivers::Target& target) {
  ASSERT_EQ(WhatIsWrongWith(image, target), "");
  const auto text = codegen::DisassembleCodeObject(image.code, target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("kernel:\n"));
  EXPECT_THAT(*text, HasSubstr("s_endpgm"));
  EXPECT_THAT(*text, Not(HasSubstr("(not an instruction)")));
  if (!HasLlvmTools()) return;
  const ToolSays notes = RunLlvmTool("llvm-readelf --notes", image.code);
  EXPECT_EQ(notes.status, 0) << notes.text;
  EXPECT_THAT(notes.text, HasSubstr(absl::StrCat("amdhsa.target:   amdgcn-amd-amdhsa--",
                                                 target.processor, "\n")));
  EXPECT_THAT(notes.text, Not(HasSubstr("hidden_")));
  const ToolSays code = RunLlvmTool("llvm-objdump -d --section=.text", image.code);
  EXPECT_EQ(code.status, 0) << code.text;
  EXPECT_THAT(code.text, HasSubstr("s_endpgm"));
  EXPECT_THAT(code.text, Not(HasSubstr("<unknown>")));
  EXPECT_THAT(code.text, Not(HasSubstr("warning")));
}

// Says once what the tests below leave out where LLVM's tools are not; the files are read all the
// same.
TEST(AmdgcnToolsTest, AreThere) {
  if (!HasLlvmTools()) GTEST_SKIP() << "no llvm-readelf and llvm-objdump in " << KILN_LLVM_TOOLS;
  EXPECT_EQ(RunLlvmTool("llvm-readelf --version #", "").status, 0);
}

class AmdgcnDTypeTest : public testing::TestWithParam<DType> {};

RunGraph OnAmdgcn() {
  return [](const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs) {
    return RunOnAmdgcn(graph, AmdgcnTarget(), inputs);
  };
}

TEST_P(AmdgcnDTypeTest, UnaryOps) { ExpectUnaryOpsRight(GetParam(), ClosenessOf, OnAmdgcn()); }
TEST_P(AmdgcnDTypeTest, BinaryOps) { ExpectBinaryOpsRight(GetParam(), ClosenessOf, OnAmdgcn()); }

INSTANTIATE_TEST_SUITE_P(All, AmdgcnDTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

class AmdgcnCaseTest : public testing::TestWithParam<TableRow> {};

TEST_P(AmdgcnCaseTest, EqualsInterpreter) { ExpectRight(GetParam(), OnAmdgcn()); }

TEST_P(AmdgcnCaseTest, IsWhole) {
  const auto graph = MakeGraph(GetParam().test_case, GetParam().dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const Gpu& gpu : kGpus) {
    SCOPED_TRACE(absl::StrCat(gpu.processor, " ", gpu.wave));
    const auto program = compiler::Compile(*graph, TargetOf(gpu), {});
    ASSERT_TRUE(program.ok()) << program.status();
    for (const compiler::CompiledKernel& kernel : program->kernels) {
      SCOPED_TRACE(kernel.ir);
      EXPECT_EQ(kernel.refusal, "");
      ExpectWhole(kernel.image, TargetOf(gpu));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, AmdgcnCaseTest, testing::ValuesIn(TableRows()),
                         [](const auto& info) { return Name(info.param); });

class AmdgcnSplitTest : public testing::TestWithParam<Case> {};

TEST_P(AmdgcnSplitTest, EqualsInterpreter) {
  ExpectGradientsRight({GetParam(), DType::kFloat32}, OnAmdgcn());
}

INSTANTIATE_TEST_SUITE_P(All, AmdgcnSplitTest, testing::ValuesIn(SplitCases()),
                         [](const auto& info) { return info.param.name; });

class AmdgcnThreadsTest : public testing::TestWithParam<ThreadCase> {};

// On subgroups of both sizes, which hand each other values in two ways.
TEST_P(AmdgcnThreadsTest, EqualsTheKernel) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(GetParam().kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<ops::HostTensor> expected = GlobalsOf(*kernel);
  std::vector<ops::HostTensor*> pointers;
  for (ops::HostTensor& tensor : expected) pointers.push_back(&tensor);
  ASSERT_EQ(kernel::Interpret(*kernel, pointers), absl::OkStatus());
  for (const std::string& directives : GetParam().schedules) {
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (const Gpu& gpu : kGpus) {
      SCOPED_TRACE(absl::StrCat(gpu.processor, " ", gpu.wave, "\n", directives));
      const drivers::Target target = TargetOf(gpu);
      const auto image = CompileToAmdgcn(*kernel, *schedule, target);
      ASSERT_TRUE(image.ok()) << image.status();
      EXPECT_GT(image->block_size, 1);
      ExpectWhole(*image, target);
      std::vector<ops::HostTensor> actual = GlobalsOf(*kernel);
      std::vector<ops::HostTensor*> run;
      for (ops::HostTensor& tensor : actual) run.push_back(&tensor);
      ASSERT_EQ(RunOnAmdgcn(*kernel, *schedule, target, run), absl::OkStatus());
      for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_EQ(Difference(actual[i], expected[i], GetParam().tolerance, GetParam().tolerance),
                  "")
            << "buffer " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AmdgcnThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

constexpr char kPlain[] =
    "buffer b0 float32[1024] read\nbuffer b1 float32[1024] write\n"
    "stage r0:1024\n  b1[r0] = b0[r0]*b0[r0] + b0[r0]\n";

std::string TextOf(const char* text, const drivers::Target& target) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(text, context);
  if (!kernel.ok()) return std::string(kernel.status().message());
  const auto row = compiler::FindMachineCode(codegen::kAmdgcnArchitecture);
  const auto image = CompileToAmdgcn(*kernel, (*row)->choose(*kernel, target), target);
  if (!image.ok()) return std::string(image.status().message());
  return *codegen::DisassembleCodeObject(image->code, target);
}

TEST(AmdgcnTextTest, EachOperationRoundsByItself) {
  for (const Gpu& gpu : kGpus) {
    const std::string text = TextOf(kPlain, TargetOf(gpu));
    EXPECT_THAT(text, HasSubstr("v_mul_f32"));
    EXPECT_THAT(text, HasSubstr("v_add_f32"));
    EXPECT_FALSE(absl::StrContains(text, "fma") || absl::StrContains(text, "mac")) << text;
  }
}

TEST(AmdgcnTextTest, NeighboursAreReadAtOnce) {
  drivers::Target target = AmdgcnTarget();
  target.limits.compute_units = 1;
  target.limits.threads_per_unit = 32;
  EXPECT_THAT(TextOf(kPlain, target), HasSubstr("global_load_b128"));
}

TEST(AmdgcnTextTest, ProcessorsAndSubgroupsThatAreNotAreNamed) {
  EXPECT_THAT(TextOf(kPlain, AmdgcnTarget("gfx1", 32)),
              HasSubstr("no code objects for the processor \"gfx1\""));
  EXPECT_THAT(TextOf(kPlain, AmdgcnTarget("gfx90a", 32)),
              HasSubstr("gfx90a has no subgroups of 32 threads"));
}

// Nothing of it is in what GPUs load.
TEST(AmdgcnTextTest, TwinsStandBehindCodeObjectsOfTheStandInsDevicesOnly) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kPlain, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  drivers::Target target = AmdgcnTarget();
  const auto with = CompileToAmdgcn(*kernel, {}, target);
  target.features = "";
  const auto without = CompileToAmdgcn(*kernel, {}, target);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_TRUE(absl::StartsWith(with->code, without->code));
  EXPECT_GT(with->code.size(), without->code.size());
}

}  // namespace
}  // namespace kiln::numerics
