// Compares every kind of machine code with the reference: the code that this machine can run, by
// the table of machine_code.h, gives the results of Kiln's interpreters, for all ops in every
// dtype, for the cases of the table, for sums that are split over blocks, and for schedules for
// blocks of threads. Installed tools read the code for each generation of processors.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/kernel/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/cases/split_cases.h"
#include "tests/numerics/cases/thread_cases.h"
#include "tests/numerics/machine_codes/graph_checks.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/test_flags.h"

namespace kiln::numerics {
namespace {

using ir::DType;

std::string NameOf(DType dtype) { return std::string(ir::Name(dtype)); }
std::string NameOf(const TableRow& row) { return Name(row); }
std::string NameOf(const Case& test_case) { return test_case.name; }
std::string NameOf(const ThreadCase& thread_case) { return thread_case.name; }

// A row and the value that it is tested with.
template <typename What>
struct With {
  const MachineCode* code;
  What what;
  std::string Name() const { return absl::StrCat(code->name, "_", NameOf(what)); }
  friend void PrintTo(const With& with, std::ostream* out) { *out << with.Name(); }
};

template <typename What>
std::vector<With<What>> EachWith(const std::vector<const MachineCode*>& codes,
                                 const std::vector<What>& all) {
  std::vector<With<What>> pairs;
  for (const MachineCode* code : codes) {
    for (const What& what : all) pairs.push_back({code, what});
  }
  return pairs;
}

// Returns for example "ptx_float32".
constexpr auto kNames = [](const auto& info) { return info.param.Name(); };

class MachineCodeTest : public testing::TestWithParam<const MachineCode*> {};

// These two report once what the tests below omit.
TEST_P(MachineCodeTest, IsRead) {
  if (const std::string why = GetParam()->why_unread(); !why.empty()) GTEST_SKIP() << why;
  if (GetParam()->generations.empty()) return;
  WrittenKernel nonsense = {.image = {}, .target = GetParam()->target};
  nonsense.image.code = "no code";
  EXPECT_NE(GetParam()->what_is_wrong({nonsense}), "");
}
TEST_P(MachineCodeTest, IsRun) {
  const std::string why = GetParam()->why_not_run();
  if (!why.empty()) GTEST_SKIP() << "nothing runs here: " << why;
}

INSTANTIATE_TEST_SUITE_P(All, MachineCodeTest, testing::ValuesIn(MachineCodes()),
                         [](const auto& info) { return info.param->name; });

// Skipped if nothing runs.
template <typename What>
class RunTest : public testing::TestWithParam<With<What>> {
 protected:
  void SetUp() override {
    if (const std::string why = code().why_not_run(); !why.empty()) GTEST_SKIP() << why;
  }
  const MachineCode& code() const { return *this->GetParam().code; }
  const What& what() const { return this->GetParam().what; }
};

class DTypeTest : public RunTest<DType> {};

TEST_P(DTypeTest, UnaryOps) { ExpectUnaryOpsRight(what(), code().closeness, On(code())); }
TEST_P(DTypeTest, BinaryOps) { ExpectBinaryOpsRight(what(), code().closeness, On(code())); }

INSTANTIATE_TEST_SUITE_P(All, DTypeTest, testing::ValuesIn(EachWith(MachineCodes(), AllDTypes())),
                         kNames);

class CaseTest : public RunTest<TableRow> {};

TEST_P(CaseTest, EqualsInterpreter) { ExpectRight(what(), On(code())); }

// Alternates both schedules of OpenCL C, so that any part of the tests has both.
std::vector<With<TableRow>> CaseParameters() {
  std::vector<With<TableRow>> parameters = EachWith({&Ptx(), &Amdgcn(), &Spirv()}, TableRows());
  for (const TableRow& row : TableRows()) {
    parameters.push_back({&OpenClC(), row});
    parameters.push_back({&OpenClCAsForCpu(), row});
  }
  return parameters;
}

INSTANTIATE_TEST_SUITE_P(Table, CaseTest, testing::ValuesIn(CaseParameters()), kNames);

class GenerationsTest : public testing::TestWithParam<With<TableRow>> {};

TEST_P(GenerationsTest, AreRead) {
  const auto& [code, row] = GetParam();
  const auto graph = MakeGraph(row.test_case, row.dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<WrittenKernel> kernels;
  for (const drivers::Target& target : code->generations) {
    const auto program = compiler::Compile(*graph, target, {});
    if (!target.capabilities.fp64 && absl::IsUnimplemented(program.status())) continue;
    ASSERT_TRUE(program.ok()) << program.status();
    for (const compiler::CompiledKernel& kernel : program->kernels) {
      EXPECT_EQ(kernel.refusal, "") << kernel.ir;
      kernels.push_back({kernel.image, target});
    }
  }
  EXPECT_EQ(code->what_is_wrong(kernels), "") << graph::Print(*graph);
}

INSTANTIATE_TEST_SUITE_P(Table, GenerationsTest,
                         testing::ValuesIn(EachWith({&Ptx(), &Amdgcn(), &Spirv()}, TableRows())),
                         kNames);

class SplitTest : public RunTest<Case> {};

TEST_P(SplitTest, EqualsInterpreter) {
  ExpectGradientsRight({what(), DType::kFloat32}, On(code()));
}

INSTANTIATE_TEST_SUITE_P(All, SplitTest, testing::ValuesIn(EachWith(MachineCodes(), SplitCases())),
                         kNames);

class BlocksOfThreadsTest : public testing::TestWithParam<With<ThreadCase>> {};

TEST_P(BlocksOfThreadsTest, EqualTheKernel) {
  const auto& [code, thread_case] = GetParam();
  const std::string why_not_run = code->why_not_run();
  if (!why_not_run.empty() && code->generations.empty()) GTEST_SKIP() << why_not_run;
  ir::Context context;
  const auto kernel = kernel::ParseKernel(thread_case.kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto interpreted = Interpreted(*kernel);
  ASSERT_TRUE(interpreted.ok()) << interpreted.status();
  std::vector<WrittenKernel> kernels;
  for (const std::string& directives : thread_case.schedules) {
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (const auto& [target, is_read, is_run] : code->thread_targets) {
      SCOPED_TRACE(absl::StrCat(target.Summary(), " ", target.limits.threads_per_subgroup, "\n",
                                directives));
      const auto image = code->compile(*kernel, *schedule, target);
      ASSERT_TRUE(image.ok()) << image.status();
      EXPECT_GT(image->block_size, 1);
      if (is_read) kernels.push_back({*image, target});
      if (!is_run || !why_not_run.empty()) continue;
      EXPECT_EQ(Disagreement(*code, *kernel, *image, target, *interpreted, thread_case.tolerance),
                "");
    }
  }
  EXPECT_EQ(code->what_is_wrong(kernels), "");
}

INSTANTIATE_TEST_SUITE_P(All, BlocksOfThreadsTest,
                         testing::ValuesIn(EachWith(MachineCodes(), ThreadCases())), kNames);
INSTANTIATE_TEST_SUITE_P(Emitters, BlocksOfThreadsTest,
                         testing::ValuesIn(EachWith({&Ptx()}, EmitterCases())), kNames);

}  // namespace
}  // namespace kiln::numerics

int main(int argc, char** argv) { return kiln::numerics::RunTests(argc, argv, {}); }
