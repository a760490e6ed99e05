// The kernels of the table of cases as PTX. LLVM writes all of them for each generation of GPUs;
// where NVIDIA's assembler is installed (ptxas, on the PATH or named by $KILN_PTXAS), it takes them
// and nothing that a thread keeps is spilled.
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
#include "tests/numerics/cases.h"
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

drivers::Target TargetOf(const Generation& generation) {
  drivers::Target target;
  target.architecture = codegen::kPtxArchitecture;
  target.processor = generation.processor;
  target.features = generation.features;
  target.limits = {.vector_bytes = 4,
                   .vector_registers = 255,
                   .compute_units = 100,
                   .threads_per_block = 1024,
                   .threads_per_subgroup = 32,
                   .threads_per_unit = 2048,
                   .shared_bytes_per_block = 48 << 10,
                   .local_bytes_max = 4 << 10};
  target.capabilities = {.fma = true, .fp64 = true, .fp16 = true, .bf16 = true};
  return target;
}

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
  if (!absl::StrContains(ptx, ".local"))
    EXPECT_THAT(said, HasSubstr("0 bytes spill stores, 0 bytes spill loads"));
}

struct PtxParameter {
  Case test_case;
  DType dtype;
  Generation generation;
};

std::vector<PtxParameter> PtxParameters() {
  std::vector<PtxParameter> parameters;
  for (const Case& test_case : Cases()) {
    bool has_float = false;
    for (const OperandSpec& operand : test_case.operands)
      has_float = has_float || operand.dtype == DType::kInvalid;
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
      if (dtype != DType::kFloat32 && !has_float) continue;
      for (const Generation& generation : kGenerations)
        parameters.push_back({test_case, dtype, generation});
    }
  }
  return parameters;
}

class PtxCaseTest : public testing::TestWithParam<PtxParameter> {};

TEST_P(PtxCaseTest, Assembles) {
  const auto& [test_case, dtype, generation] = GetParam();
  const auto graph = MakeGraph(test_case, dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto program = compiler::Compile(*graph, TargetOf(generation), {});
  ASSERT_TRUE(program.ok()) << program.status();
  for (const compiler::CompiledKernel& kernel : program->kernels) {
    SCOPED_TRACE(kernel.ir);
    EXPECT_EQ(kernel.refusal, "");
    ExpectAssembles(kernel.image, generation);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PtxCaseTest, testing::ValuesIn(PtxParameters()),
                         [](const auto& info) {
                           return absl::StrCat(info.param.test_case.name, "_",
                                               std::string(ir::Name(info.param.dtype)), "_",
                                               info.param.generation.processor);
                         });

class PtxThreadsTest : public testing::TestWithParam<ThreadCase> {};

TEST_P(PtxThreadsTest, Assembles) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(GetParam().kernel, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Generation& generation = kGenerations[0];
  const codegen::MachineCode& machine = **compiler::FindMachineCode(codegen::kPtxArchitecture);
  for (const std::string& directives : GetParam().schedules) {
    SCOPED_TRACE(directives);
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto image = codegen::CompileKernel(machine, *kernel, *schedule, TargetOf(generation));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_GT(image->block_size, 1);
    if (image->shared_bytes > 0) EXPECT_THAT(image->code, HasSubstr(".shared"));
    ExpectAssembles(*image, generation);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PtxThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
