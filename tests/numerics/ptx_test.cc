// Kernels as PTX: its interpreter gives what Kiln's own gives for the graph; and LLVM writes them
// for each generation of GPUs. Where NVIDIA's assembler is installed (ptxas, on the PATH or named
// by $KILN_PTXAS), it takes them and nothing that a thread keeps is spilled.
#include "compiler/codegen/ptx.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/compiler.h"
#include "compiler/kernel/text.h"
#include "compiler/machine_codes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/graph_checks.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/ptxas.h"
#include "tests/numerics/run_ptx.h"
#include "tests/numerics/split_cases.h"
#include "tests/numerics/thread_cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ::testing::HasSubstr;
using ::testing::Not;

struct Generation {
  const char* processor;
  const char* features;
};
constexpr Generation kGenerations[] = {
    {"sm_75", "+ptx78"}, {"sm_80", "+ptx78"}, {"sm_90", "+ptx78"}, {"sm_100", "+ptx86"}};

void ExpectAssembles(const drivers::KernelImage& image, const Generation& generation) {
  const std::string& ptx = image.code;
  ASSERT_THAT(ptx, HasSubstr(absl::StrCat(".target ", generation.processor)));
  // Each operation rounds by itself, keeps denormals, and none is approximated.
  EXPECT_THAT(ptx, Not(HasSubstr(".ftz")));
  EXPECT_THAT(ptx, Not(HasSubstr(".approx")));
  if (Ptxas().empty()) return;
  const Assembled assembled = Assemble(ptx, generation.processor);
  EXPECT_EQ(assembled.status, 0) << assembled.said << ptx;
  // Where a schedule keeps much for each thread, registers do not hold it.
  if (!absl::StrContains(ptx, ".local")) {
    EXPECT_TRUE(SaysNoSpills(assembled)) << assembled.said;
  }
}

// Says once what the tests below leave out where there is no ptxas; the PTX itself is looked at.
TEST(PtxAssemblerTest, IsThere) {
  if (Ptxas().empty()) GTEST_SKIP() << "no ptxas on $PATH or in $KILN_PTXAS: nothing is assembled";
  EXPECT_EQ(access(Ptxas().c_str(), X_OK), 0) << Ptxas();
}

// All that drivers/cuda/device_query.cc names.
TEST(PtxProcessorsTest, EachIsKnown) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(ThreadCases()[0].kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  constexpr Generation kAll[] = {{"sm_75", "+ptx78"},  {"sm_80", "+ptx78"},  {"sm_86", "+ptx78"},
                                 {"sm_87", "+ptx78"},  {"sm_89", "+ptx78"},  {"sm_90", "+ptx78"},
                                 {"sm_100", "+ptx86"}, {"sm_103", "+ptx88"}, {"sm_120", "+ptx87"},
                                 {"sm_121", "+ptx88"}};
  for (const Generation& generation : kAll) {
    SCOPED_TRACE(generation.processor);
    const auto image =
        CompileToPtx(*kernel, {}, PtxTarget(generation.processor, generation.features));
    ASSERT_TRUE(image.ok()) << image.status();
    ExpectAssembles(*image, generation);
  }
}

class PtxDTypeTest : public testing::TestWithParam<DType> {};

RunGraph OnPtx() {
  return [](const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs) {
    return RunOnPtx(graph, inputs);
  };
}

TEST_P(PtxDTypeTest, UnaryOps) { ExpectUnaryOpsRight(GetParam(), ClosenessOf, OnPtx()); }
TEST_P(PtxDTypeTest, BinaryOps) { ExpectBinaryOpsRight(GetParam(), ClosenessOf, OnPtx()); }

INSTANTIATE_TEST_SUITE_P(All, PtxDTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

class PtxCaseTest : public testing::TestWithParam<TableRow> {};

TEST_P(PtxCaseTest, EqualsInterpreter) { ExpectRight(GetParam(), OnPtx()); }

TEST_P(PtxCaseTest, Assembles) {
  const auto graph = MakeGraph(GetParam().test_case, GetParam().dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const Generation& generation : kGenerations) {
    const auto program =
        compiler::Compile(*graph, PtxTarget(generation.processor, generation.features), {});
    ASSERT_TRUE(program.ok()) << program.status();
    for (const compiler::CompiledKernel& kernel : program->kernels) {
      SCOPED_TRACE(kernel.ir);
      EXPECT_EQ(kernel.refusal, "");
      ExpectAssembles(kernel.image, generation);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PtxCaseTest, testing::ValuesIn(TableRows()),
                         [](const auto& info) { return Name(info.param); });

class PtxSplitTest : public testing::TestWithParam<Case> {};

TEST_P(PtxSplitTest, EqualsInterpreter) {
  ExpectGradientsRight({GetParam(), DType::kFloat32}, OnPtx());
}

INSTANTIATE_TEST_SUITE_P(All, PtxSplitTest, testing::ValuesIn(SplitCases()),
                         [](const auto& info) { return info.param.name; });

class PtxThreadsTest : public testing::TestWithParam<ThreadCase> {};

TEST_P(PtxThreadsTest, EqualsTheKernel) {
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
    const Generation& generation = kGenerations[0];
    const auto image =
        CompileToPtx(*kernel, *schedule, PtxTarget(generation.processor, generation.features));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_GT(image->block_size, 1);
    if (image->shared_bytes > 0) {
      EXPECT_THAT(image->code, HasSubstr(absl::StrCat("shared[", image->shared_bytes, "]")));
    }
    ExpectAssembles(*image, generation);
    std::vector<ops::HostTensor> actual = GlobalsOf(*kernel);
    std::vector<ops::HostTensor*> run;
    for (ops::HostTensor& tensor : actual) run.push_back(&tensor);
    ASSERT_EQ(RunOnPtx(*kernel, *schedule, run), absl::OkStatus());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(Difference(actual[i], expected[i], GetParam().tolerance, GetParam().tolerance), "")
          << "buffer " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PtxThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

// The first stage runs in one thread of those that the second one has.
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

// Rows that overlap, two places apart.
constexpr char kWindows[] = R"(buffer b0 float16[352] read
buffer b1 float16[512] read
buffer b2 float32[128] write
stage r0:16 r1:8 reduce r2:4 r3:16
  b2[r0*8 + r1] = sum(float32(b0[r3*22 + r0 + r2*2])*float32(b1[r1*64 + r2*16 + r3]))
)";

std::vector<ThreadCase> CasesForEmitters() {
  return {
      // A thread waits for what it copied itself.
      {"one_thread", kOneThread, {"bind 2 thread\norder 0 1 0\nstage 0 0 1 1 1\nahead 1\n"}, 1e-5},
      // The same sum over threads inside of a loop and behind it.
      {"sums_ahead",
       kRows,
       {"split 1 32\nbind 3 thread\norder 0 0 2 3\nstage 0 0 0 1 1\nahead 0\n"},
       1e-5},
      // Tiles of rows that end early in two ways, each with loops of its own.
      {"sums_in_branches",
       ThreadCases()[0].kernel,
       {"bind 0 task\nsplit 1 16\nsplit 4 3\nbind 3 task\nbind 6 unroll\nsplit 2 4\n"
        "bind 8 thread\norder 0 0 3 7 5 6 8\n"},
       2e-5},
      // No lines of 16 bytes for a matrix unit.
      {"windows",
       kWindows,
       {"split 0 8\nsplit 1 2\nbind 4 matrix\nbind 5 thread\nbind 6 thread\nbind 7 matrix\n"
        "bind 3 matrix\norder 0 5 6 2 4 7 3\nstage 0 0 -1 8 3 1*0+2*2\nstage 0 1 -1 8 1 2 3\n"},
       1e-5},
  };
}

INSTANTIATE_TEST_SUITE_P(Emitters, PtxThreadsTest, testing::ValuesIn(CasesForEmitters()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
