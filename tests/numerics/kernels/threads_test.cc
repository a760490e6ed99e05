// Schedules for blocks of threads: their loops, run block by block on the host, compute what the
// kernel says, without races. Without one of their barriers there is a race, except for barriers at
// places where no thread accesses what another one wrote.
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/kernel/text.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/testing/interpret.h"
#include "compiler/schedule/threads/synchronize.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/thread_cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/kernels/planted_faults.h"
#include "tests/numerics/kernels/proved_loops.h"

namespace kiln::numerics {
namespace {

using ops::HostTensor;
using schedule::LoopProgram;

std::vector<HostTensor*> PointersTo(std::vector<HostTensor>& tensors) {
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

class ThreadsTest : public testing::TestWithParam<ThreadCase> {
 protected:
  void SetUp() override {
    auto kernel = kernel::ParseKernel(GetParam().kernel, context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *std::move(kernel);
  }

  // Returns proved loops, for `shuffling` neighbours that exchange values directly.
  absl::StatusOr<LoopProgram> Loops(const std::string& directives, int shuffling) {
    const auto schedule = schedule::Parse(directives);
    return schedule.ok() ? ProvedLoops(kernel_, *schedule, shuffling) : schedule.status();
  }

  absl::Status Run(const LoopProgram& program, std::vector<HostTensor>* results) {
    *results = GlobalsOf(kernel_);
    return schedule::Interpret(program, PointersTo(*results));
  }

  static std::vector<std::pair<std::string, int>> SchedulesAndShuffles() {
    std::vector<std::pair<std::string, int>> both;
    for (const std::string& directives : GetParam().schedules) {
      for (const int shuffling : {1, 4}) both.emplace_back(directives, shuffling);
    }
    return both;
  }

  ir::Context context_;
  kernel::Kernel kernel_;
};

TEST_P(ThreadsTest, EqualsTheKernel) {
  std::vector<HostTensor> expected = GlobalsOf(kernel_);
  ASSERT_EQ(kernel::Interpret(kernel_, PointersTo(expected)), absl::OkStatus());
  for (const auto& [directives, shuffling] : SchedulesAndShuffles()) {
    SCOPED_TRACE(absl::StrCat(directives, shuffling, " neighbours"));
    const auto program = Loops(directives, shuffling);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_GT(program->threads, 1);
    std::vector<HostTensor> actual;
    ASSERT_EQ(Run(*program, &actual), absl::OkStatus()) << Print(*program);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(Difference(actual[i], expected[i], GetParam().tolerance, GetParam().tolerance), "")
          << "buffer " << i << "\n"
          << Print(*program);
    }
  }
}

// Removes barrier number `which`, counted in program order; false if there are fewer.
bool RemoveBarrier(std::vector<schedule::Statement>* body, int* which) {
  for (size_t i = 0; i < body->size(); ++i) {
    schedule::Statement& statement = (*body)[i];
    if (std::holds_alternative<schedule::Barrier>(statement.node) && (*which)-- == 0) {
      body->erase(body->begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    if (auto* loop = std::get_if<schedule::Loop>(&statement.node)) {
      if (RemoveBarrier(&loop->body, which)) return true;
    } else if (auto* branch = std::get_if<schedule::Branch>(&statement.node)) {
      if (RemoveBarrier(&branch->then_body, which)) return true;
      if (RemoveBarrier(&branch->else_body, which)) return true;
    }
  }
  return false;
}

TEST_P(ThreadsTest, WithoutABarrierThereIsARace) {
  int needed = 0;
  int spare = 0;
  for (const auto& [directives, shuffling] : SchedulesAndShuffles()) {
    SCOPED_TRACE(absl::StrCat(directives, shuffling, " neighbours"));
    const auto program = Loops(directives, shuffling);
    ASSERT_TRUE(program.ok()) << program.status();
    for (int number = 0;; ++number) {
      LoopProgram without = *program;
      int which = number;
      if (!RemoveBarrier(&without.sections[0].body, &which)) break;
      std::vector<HostTensor> results;
      const absl::Status status = Run(without, &results);
      ASSERT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      ++(status.ok() ? spare : needed);
    }
  }
  EXPECT_EQ(needed, GetParam().needed_barriers);
  EXPECT_EQ(spare, GetParam().spare_barriers);
}

// The proof refuses a fault in the application of a schedule, or the fault shows when the loops
// run.
TEST_P(ThreadsTest, PlantedFaultsAreFound) {
  constexpr size_t kFaultsMax = 40;
  std::mt19937 random(1);
  std::vector<HostTensor> expected = GlobalsOf(kernel_);
  ASSERT_EQ(kernel::Interpret(kernel_, PointersTo(expected)), absl::OkStatus());
  int refused = 0, wrong_when_run = 0, no_fault = 0;
  for (const std::string& directives : GetParam().schedules) {
    const auto schedule = schedule::Parse(directives);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto program = schedule::Apply(kernel_, *schedule);
    ASSERT_TRUE(program.ok()) << program.status();
    for (PlantedFault& fault : PlantFaults(*program, kFaultsMax, random)) {
      if (proof::IsDisproof(proof::Prove(kernel_, *schedule, fault.program))) {
        ++refused;
        continue;
      }
      std::vector<HostTensor> actual;
      bool same = Run(schedule::Synchronize(std::move(fault.program)), &actual).ok();
      for (size_t i = 0; same && i < actual.size(); ++i) {
        same = Difference(actual[i], expected[i], 1e-4, 1e-4).empty();
      }
      ++(same ? no_fault : wrong_when_run);
      if (!same) std::cout << "the proof accepts " << fault.what << "\n" << directives;
    }
  }
  const int faults = refused + wrong_when_run;
  std::cout << faults << " faults planted: " << refused << " refused by the proof, "
            << wrong_when_run << " seen when run; " << no_fault << " changes made no difference\n";
  EXPECT_GT(faults, 20);
  EXPECT_GE(refused, faults * 95 / 100);
}

INSTANTIATE_TEST_SUITE_P(All, ThreadsTest, testing::ValuesIn(ThreadCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
