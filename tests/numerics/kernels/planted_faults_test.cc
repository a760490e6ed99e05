// The proof refuses faults planted into scheduled kernels, except a rare one that needs several
// axes at particular values: that one shows when the kernel runs. A change that neither detects is
// not a fault.
#include "tests/numerics/kernels/planted_faults.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <random>
#include <utility>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/machine_codes.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/heuristics/heuristic.h"
#include "tests/numerics/kernels/kernel_check.h"

namespace kiln::numerics {
namespace {

using codegen::ConvolutionShape;
using codegen::KernelWriter;

// For one kernel, which has thousands.
constexpr size_t kFaultsMax = 60;

struct Tally {
  int refused = 0;
  int no_code = 0;  // refused by LLVM's verifier, so that it never runs
  int wrong_when_run = 0;
  int no_fault = 0;
};

// out[index[k], j] += values[k, j], in the order of k.
kernel::Kernel ScatterKernel(ir::Context& context) {
  KernelWriter w(context);
  const int index = w.In(37, ir::DType::kInt64), values = w.In(37 * 21);
  const int out = w.Buffer(11 * 21, kernel::Access::kUpdate);
  auto j = w.Range(21), k = w.Range(37);
  w.Scatter({j}, {k});
  auto row = w.Load(index, k);
  auto inside = (w.Int(-1) < row) & (row < 11);
  auto target = w.Where(inside, row, w.Int(0)) * 21 + j;
  w.StoreIf(out, target, w.Load(out, target) + w.Load(values, k * 21 + j), inside);
  w.kernel.name = "scatter";
  return w.kernel;
}

class PlantedFaultsTest : public codegen::KernelsTest {
 protected:
  void Try(const kernel::Kernel& kernel, const schedule::Schedule& schedule) {
    auto program = schedule::Apply(kernel, schedule);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_EQ(proof::Prove(kernel, schedule, *program), absl::OkStatus()) << kernel.name;
    std::optional<absl::StatusOr<codegen::InterpretedKernel>> interpreted;
    for (const PlantedFault& fault : PlantFaults(*program, kFaultsMax, random_)) {
      const absl::Status status = proof::Prove(kernel, schedule, fault.program);
      if (proof::IsDisproof(status)) {
        ++tally_.refused;
        continue;
      }
      ASSERT_EQ(status, absl::OkStatus());
      const auto image =
          codegen::CompileLoops(**compiler::FindMachineCode(codegen::HostTarget().architecture),
                                kernel, fault.program, codegen::HostTarget());
      if (!image.ok()) {
        ++tally_.no_code;
        continue;
      }
      if (!interpreted.has_value()) interpreted = codegen::InterpretKernel(kernel);
      if (IsRightWhenRun(*interpreted, image)) {
        ++tally_.no_fault;
        continue;
      }
      ++tally_.wrong_when_run;
      std::cout << kernel.name << ": the proof accepts " << fault.what << "\n"
                << schedule::Print(schedule);
    }
  }
  // In a separate process, since a fault may write anywhere.
  static bool IsRightWhenRun(const absl::StatusOr<codegen::InterpretedKernel>& interpreted,
                             const absl::StatusOr<drivers::KernelImage>& image) {
    const pid_t child = fork();
    if (child == 0) {
      const absl::Status same = codegen::CompareWithInterpreter(interpreted, image, 2e-4);
      _exit(same.ok() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void TryChosen(const kernel::Kernel& kernel) {
    for (const int vector_bytes : {16, 32, 64}) {
      drivers::Target target = codegen::HostTarget();
      target.limits.vector_bytes = std::min(vector_bytes, target.limits.vector_bytes);
      Try(kernel, search::Choose(kernel, target));
    }
  }
  void TearDown() override {
    const int faults = tally_.refused + tally_.no_code + tally_.wrong_when_run;
    std::cout << faults << " faults planted: " << tally_.refused << " refused by the proof, "
              << tally_.no_code << " by the code generator, " << tally_.wrong_when_run
              << " seen when run; " << tally_.no_fault << " changes made no difference\n";
    EXPECT_GT(faults, 100);
    // About 99% where this was written; the faults depend on the schedules, which depend on the
    // machine.
    EXPECT_GE(tally_.refused, faults * 97 / 100);
  }

  std::mt19937 random_{1};
  Tally tally_;
};

TEST_F(PlantedFaultsTest, Contractions) {
  TryChosen(codegen::MatmulKernel(context_, 70, 97, 133));
  TryChosen(codegen::MatmulKernel(context_, 1, 300, 200, false, true));
  const char* const schedules[] = {
      "split 1 16\nsplit 3 2\nbind 4 vector\nsplit 0 4\nbind 8 unroll\norder 0 5 6 7 2 8 4",
      "split 0 12\nbind 3 task\nsplit 4 4\nbind 6 unroll\nsplit 1 32\nbind 7 task\nsplit 8 16\n"
      "bind 9 unroll\nbind 10 vector\norder 0 3 7 5 2 6 9 10\nstage 0 1 -1 16 2 1",
      "split 2 8\nsplit 4 2\nbind 6 unroll\npartial 6\norder 0 0 1 3 5 6",
      "split 2 5\nsplit 1 16\nbind 6 vector\norder 0 3 5 0 4 6\nstage 0 1 3 16 2 1\n"
      "stage 0 0 5 16 0 2"};
  for (const char* text : schedules) {
    Try(codegen::MatmulKernel(context_, 23, 37, 29), *schedule::Parse(text));
  }
}

TEST_F(PlantedFaultsTest, Convolutions) {
  const ConvolutionShape padded = {3, 5, 20, 11, 3, 1}, strided = {2, 3, 17, 14, 4, 1, 2};
  const ConvolutionShape plain = {2, 6, 18, 9, 3};
  for (const ConvolutionShape& shape : {padded, strided}) {
    TryChosen(codegen::ConvolutionKernel(context_, shape));
    TryChosen(codegen::ConvolutionWeightGradientKernel(context_, shape));
  }
  TryChosen(codegen::ConvolutionInputGradientKernel(context_, plain));
}

TEST_F(PlantedFaultsTest, Rows) {
  TryChosen(codegen::SoftmaxKernel(context_, 13, 75));
  TryChosen(codegen::SoftmaxKernel(context_, 75, 5));
  TryChosen(codegen::LayerNormKernel(context_, 9, 130));
}

TEST_F(PlantedFaultsTest, ElementwiseAndScatters) {
  TryChosen(codegen::ChainKernel(context_, 1003));
  TryChosen(ScatterKernel(context_));
}

}  // namespace
}  // namespace kiln::numerics
