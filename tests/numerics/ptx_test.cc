// Kernels as PTX: its interpreter gives what Kiln's own gives for the graph; and LLVM writes them
// for each generation of GPUs. Where NVIDIA's assembler is installed (ptxas, on the PATH or named
// by $KILN_PTXAS), it takes them and nothing that a thread keeps is spilled.
#include "compiler/codegen/ptx.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/codegen.h"
#include "compiler/compiler.h"
#include "compiler/kernel/text.h"
#include "compiler/machine_codes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/graph_checks.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/run_ptx.h"
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

// Empty: there is none.
std::string Ptxas() {
  if (const char* named = std::getenv("KILN_PTXAS"); named != nullptr) return named;
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string program = absl::StrCat(std::string(folder), "/ptxas");
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// What ptxas -v says of the text, and its exit status.
std::pair<int, std::string> Assemble(const std::string& ptx, const std::string& processor) {
  const std::string folder = testing::TempDir();
  const std::string source = absl::StrCat(folder, "/kiln_", getpid(), ".ptx");
  std::ofstream(source) << ptx;
  const std::string command =
      absl::StrCat(Ptxas(), " -v -arch=", processor, " -o /dev/null ", source, " 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe)) said.append(part, size);
  const int status = pclose(pipe);
  std::filesystem::remove(source);
  return {status, said};
}

void ExpectAssembles(const drivers::KernelImage& image, const Generation& generation) {
  const std::string& ptx = image.code;
  ASSERT_THAT(ptx, HasSubstr(absl::StrCat(".target ", generation.processor)));
  // Each operation rounds by itself, keeps denormals, and none is approximated.
  EXPECT_THAT(ptx, Not(HasSubstr(".ftz")));
  EXPECT_THAT(ptx, Not(HasSubstr(".approx")));
  if (Ptxas().empty()) return;
  const auto [status, said] = Assemble(ptx, generation.processor);
  EXPECT_EQ(status, 0) << said << ptx;
  // Where a schedule keeps much for each thread, registers do not hold it.
  if (!absl::StrContains(ptx, ".local")) {
    EXPECT_THAT(said, HasSubstr("0 bytes spill stores, 0 bytes spill loads"));
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

}  // namespace
}  // namespace kiln::numerics
