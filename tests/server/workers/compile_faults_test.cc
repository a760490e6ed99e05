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
#include "server/tuner/tuned_setting.h"
#include "tests/server/trainer.h"
#include "tests/server/workers/faults_fixture.h"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The environment variable with the path of a file that a worker creates when it hangs.
constexpr char kSpinningFile[] = "KILN_TEST_SPINNING_FILE";

bool HasSize(const workers::KernelJob& job, int64_t size) {
  return absl::StrContains(job.kernel, absl::StrCat("[", size, "]"));
}

// A worker's task: compiles, except for the kernels with a planted fault.
absl::StatusOr<drivers::KernelImage> CompileOrFail(const workers::KernelJob& job) {
  // A decision that violates an invariant.
  const bool is_choice = job.rehearsal && absl::StrContains(job.rehearsal->choices, "apart");
  const bool is_setting =
      job.rehearsal && !job.rehearsal->setting.empty() && HasSize(job, kAbortsWithSettings);
  if (is_choice || is_setting) {
    std::fputs("CHECK failed: a planted invariant\n", stderr);
    std::abort();
  }
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

// Gives the kernel that was searched a setting that kills the workers.
void Plant(Client& client) {
  grpc::ClientContext exporting, importing;
  v1::ExportSettingsResponse exported;
  ASSERT_TRUE(client.admin->ExportSettings(&exporting, {}, &exported).ok());
  auto settings = tuner::ParseSettings(exported.text());
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->size(), 2u);  // the graph's and the kernel's
  std::erase_if(*settings, [](const auto& one) { return absl::StartsWith(one.kernel, "graph "); });
  ASSERT_EQ(settings->size(), 1u);
  settings->front().setting = "setting 1\nstage 0 form=scalar\n";
  settings->front().seconds_after = settings->front().seconds_before / 1000;
  v1::ImportSettingsRequest request;
  request.set_text(tuner::PrintSettings(*std::move(settings)));
  v1::ImportSettingsResponse imported;
  ASSERT_TRUE(client.admin->ImportSettings(&importing, request, &imported).ok());
  EXPECT_EQ(imported.replaced(), 1u);
}

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

// Searches try decisions that the compiler itself would not make.
TEST_F(CompileFaults, ACandidateThatViolatesAnInvariantIsOnlyRefused) {
  Start(30);
  const Trainer trainer(address_);
  ASSERT_TRUE(trainer.Advances(10));
  Client client(address_);
  auto stream = client.Connect();
  const std::string digest = stream->Call(Define(1, ProductAndSum(kAbortsWithSettings))).digest();
  ASSERT_NE(digest, "");
  grpc::ClientContext context;
  v1::TuneProgramRequest request;
  request.set_digest(digest);
  request.set_beam_width(1);
  request.set_seconds(3600);  // it ends by itself
  auto call = client.programs->TuneProgram(&context, request);
  v1::TuneProgramResponse last;
  while (call->Read(&last)) EXPECT_FALSE(last.site()) << last.kernel() << ": " << last.why();
  const grpc::Status ended = call->Finish();
  EXPECT_TRUE(ended.ok()) << ended.error_message();
  EXPECT_EQ(last.state(), v1::TuneProgramResponse::KEPT) << last.why();
  EXPECT_EQ(last.tried(), 1u) << "a setting was measured that its rehearsal has not survived";
  EXPECT_TRUE(trainer.Advances(10));
  EXPECT_THAT(daemon_->MetricsText(), Not(HasSubstr("kiln_compile_worker_failures_total 0\n")));
  // Stored ones may come from another machine, or from another version.
  Plant(client);
  Client next(address_);
  const v1::Result again = next.Connect()->Call(Define(1, ProductAndSum(kAbortsWithSettings)));
  EXPECT_FALSE(again.has_error()) << again.error().message();
  grpc::ClientContext explaining;
  v1::ExplainProgramRequest explain;
  explain.set_digest(digest);
  v1::ExplainProgramResponse explained;
  ASSERT_TRUE(next.programs->ExplainProgram(&explaining, explain, &explained).ok());
  ASSERT_EQ(explained.kernels_size(), 1);
  EXPECT_THAT(explained.kernels(0).setting_refusal(),
              AllOf(HasSubstr("planning it for x86-64"), HasSubstr("a planted invariant")));
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
  if (kiln::IsTrialProcess(argc, argv)) kiln::RunTrials(argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
