// Kernels that crash, hang or exhaust the process that compiles them: each is an error of its own
// program, while another client's training continues, bit for bit. The daemon is in this process,
// with the real compiler and CPU. Its workers are this executable; only they have the faults.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/workers/worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/trainer.h"
#include "tests/server/workers/faults_fixture.h"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The environment variable with the path of a file that a worker creates when it hangs.
constexpr char kSpinningFile[] = "KILN_TEST_SPINNING_FILE";

bool HasSize(const workers::KernelJob& job, int64_t size) {
  return absl::StrContains(job.kernel, absl::StrCat("[", size, "]"));
}

// A worker's task: compiles, except for the kernels with a planted fault.
absl::StatusOr<drivers::KernelImage> CompileOrFail(const workers::KernelJob& job) {
  if (HasSize(job, kAborts)) {
    std::fputs("LLVM ERROR: Cannot select: a planted fault\n", stderr);
    std::abort();
  }
  if (HasSize(job, kSpins)) std::ofstream(std::getenv(kSpinningFile)) << "spins";
  for (volatile bool spins = HasSize(job, kSpins); spins;) {
  }
  while (HasSize(job, kEats)) {
    if ((new std::string(1 << 24, 'x'))->empty()) std::abort();
  }
  return compiler::CompileJob(job);
}

class CompileFaults : public FaultsTest {
 protected:
  void SetUp() override {
    FaultsTest::SetUp();
    setenv(kSpinningFile, (folder_ + "/spins").c_str(), 1);
  }
  void WaitUntilItSpins() {
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ + "/spins"); }))
        << "no worker has begun";
  }
};

TEST_F(CompileFaults, AreErrorsOfTheirOwnPrograms) {
  Start(30);
  const Trainer trainer(address_);
  ASSERT_TRUE(trainer.Advances(10));
  EXPECT_THAT(ErrorOf(AddGraph(kAborts)),
              AllOf(HasSubstr("kernel "), HasSubstr("compiling it for x86-64"),
                    HasSubstr("SIGABRT"), HasSubstr("Cannot select: a planted fault")));
  const auto let_time_pass = [this] {
    WaitUntilItSpins();
    Advance(31);
  };
  EXPECT_THAT(ErrorOf(AddGraph(kSpins), "", let_time_pass),
              AllOf(HasSubstr("kernel "), HasSubstr("for x86-64"),
                    HasSubstr("took longer than 30 seconds")));
  if (workers::kLimitsMemory) {
    EXPECT_THAT(ErrorOf(AddGraph(kEats)),
                AllOf(HasSubstr("kernel "), HasSubstr("for x86-64"), HasSubstr("bytes of memory")));
  }
  EXPECT_TRUE(trainer.Advances(10));
  // Two workers died because of the first kernel.
  EXPECT_THAT(daemon_->MetricsText(), HasSubstr(absl::StrCat("kiln_compile_worker_failures_total ",
                                                             workers::kLimitsMemory ? 4 : 3)));
}

TEST_F(CompileFaults, DoNotHoldUpAShutdown) {
  Start(30);  // the test's clock does not move
  Client client(address_);
  auto stream = client.Connect();
  const uint64_t spinning = stream->Send(Define(1, AddGraph(kSpins)));
  WaitUntilItSpins();
  daemon_.reset();
  EXPECT_NE(stream->Answer(spinning).error().code(), 0);
}

}  // namespace
}  // namespace kiln::testing

int main(int argc, char** argv) {
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::testing::CompileOrFail);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
