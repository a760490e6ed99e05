// A vendor's compiler that crashes, hangs or exhausts its process: each time it is an error of its
// own program, while another client's training continues, bit for bit. The compiler's results are
// cached. The daemon is in this process, with a CPU and OpenCL's stand-in. The stand-in's compiler
// has faults only in workers, which are this executable.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "compiler/workers/worker.h"
#include "drivers/common/dynamic_library.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/trainer.h"
#include "tests/server/workers/faults_fixture.h"
#include "tests/stand_ins/opencl/control.h"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kDevice[] = "opencl:0";
// Environment variables for workers: the path of a file that gets a byte for each build, and the
// properties of their OpenCL.
constexpr char kBuildsFile[] = "KILN_TEST_BUILDS_FILE";
constexpr char kVersion[] = "KILN_TEST_OPENCL_VERSION";
constexpr char kBinaryForm[] = "KILN_TEST_OPENCL_BINARY_FORM";

stand_ins::opencl::Control& Control() {
  static stand_ins::opencl::Control* const control = [] {
    stand_ins::opencl::Control* (*find)() = nullptr;
    auto library = drivers::DynamicLibrary::Open(KILN_OPENCL_STAND_IN);
    if (!library.ok() || !(*library)->Find("KilnOpenClStandInControl", &find).ok()) std::abort();
    static const auto* const stays_open = library->release();
    return stays_open == nullptr ? nullptr : find();
  }();
  return *control;
}

int Number(const char* name) {
  int number = 0;
  return absl::SimpleAtoi(std::getenv(name), &number) ? number : 0;
}

// A worker's task: compiles or finishes, except for kernels with a planted fault.
absl::StatusOr<drivers::KernelImage> CompileOrFinish(const workers::KernelJob& job) {
  if (!job.unfinished) return compiler::CompileJob(job);
  static auto* const driver = new drivers::opencl::OpenClDriver({.library = KILN_OPENCL_STAND_IN});
  static const std::string aborts = absl::StrCat(kAborts), spins = absl::StrCat(kSpins),
                           eats = absl::StrCat(kEats);
  Control().aborts_at = aborts.c_str();
  Control().spins_at = spins.c_str();
  Control().eats_memory_at = eats.c_str();
  Control().driver_version = Number(kVersion);
  Control().binary_form = Number(kBinaryForm);
  Control().gives_binaries = Number(kBinaryForm) > 0;
  std::ofstream(std::getenv(kBuildsFile), std::ios::app) << 'x';
  return driver->Finish(*job.unfinished, job.target.finisher);
}

class FinishFaults : public FaultsTest {
 protected:
  void SetUp() override {
    FaultsTest::SetUp();
    setenv(kBuildsFile, (folder_ + "/builds").c_str(), 1);
    SetOpenCl(/*version=*/1, /*workers_form=*/1, /*daemons_form=*/1);
    Control().sources_built = 0;
    Control().binaries_built = 0;
  }
  // Sets the driver's version, and the forms of binaries that workers make and the daemon accepts;
  // 0: none.
  void SetOpenCl(int version, int workers_form, int daemons_form) {
    setenv(kVersion, absl::StrCat(version).c_str(), 1);
    setenv(kBinaryForm, absl::StrCat(workers_form).c_str(), 1);
    Control().driver_version = version;
    Control().binary_form = daemons_form;
  }
  void AddDrivers(config::Config* config, DaemonParts* parts) override {
    config->devices.push_back(kDevice);
    parts->drivers.push_back(std::make_unique<drivers::opencl::OpenClDriver>(
        drivers::opencl::OpenClOptions{.library = KILN_OPENCL_STAND_IN}));
  }

  // Returns the number of builds in workers so far.
  int64_t builds() const {
    std::ifstream file(folder_ + "/builds");
    return std::distance(std::istreambuf_iterator<char>(file), {});
  }
  // Starts a fresh daemon that compiles this program. Returns the number of builds that this took.
  int64_t BuildsOf(const v1::Graph& graph) {
    daemon_.reset();
    const int64_t before = builds();
    Start(30);
    Client client(address_, 0, kDevice);
    const v1::Result result = client.Connect()->Call(Define(1, graph));
    EXPECT_FALSE(result.has_error()) << result.error().message();
    return builds() - before;
  }
};

TEST_F(FinishFaults, AreErrorsOfTheirOwnPrograms) {
  // A vendor's compiler gets four times this limit.
  Start(8);
  const Trainer trainer(address_);
  ASSERT_TRUE(trainer.Advances(10));
  const auto names = [](const std::string& why) {
    return AllOf(HasSubstr("kernel "),
                 HasSubstr("building it with the compiler of stand-in GPU, stand-in"),
                 HasSubstr(why));
  };
  EXPECT_THAT(ErrorOf(AddGraph(kAborts), kDevice),
              AllOf(names("SIGABRT"), HasSubstr("the stand-in's compiler: a planted fault")));
  const int64_t before = builds();
  const auto let_time_pass = [&] {
    EXPECT_TRUE(Eventually([&] { return builds() > before; })) << "no worker has begun";
    Advance(33);
  };
  EXPECT_THAT(ErrorOf(AddGraph(kSpins), kDevice, let_time_pass),
              names("took longer than 32 seconds"));
  if (workers::kLimitsMemory) {
    EXPECT_THAT(ErrorOf(AddGraph(kEats), kDevice), names("bytes of memory"));
  }
  EXPECT_TRUE(trainer.Advances(10));
  // Two workers died because of the first kernel.
  EXPECT_THAT(daemon_->MetricsText(), HasSubstr(absl::StrCat("kiln_compile_worker_failures_total ",
                                                             workers::kLimitsMemory ? 4 : 3)));
  EXPECT_EQ(Control().sources_built, 0);
}

TEST_F(FinishFaults, ARestartBuildsNothing) {
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  EXPECT_EQ(Control().binaries_built, 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 0);
  EXPECT_EQ(Control().binaries_built, 2);
  EXPECT_EQ(Control().sources_built, 0);
}

TEST_F(FinishFaults, AnotherVersionOfTheDriverTakesNothingOfThisOnes) {
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  // If it looked at the cached binary, it would accept it.
  SetOpenCl(2, 1, 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  SetOpenCl(1, 1, 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 0);
  EXPECT_EQ(Control().sources_built, 0);
}

TEST_F(FinishFaults, WhatIsRefusedIsBuiltAgain) {
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  // An update that does not change the version.
  SetOpenCl(1, 2, 2);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 0);
  EXPECT_EQ(Control().sources_built, 0);
}

TEST_F(FinishFaults, ADeviceThatRefusesItsOwnBinariesBuildsInTheDaemon) {
  SetOpenCl(1, 1, 2);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 2);
  EXPECT_EQ(Control().sources_built, 1);
}

TEST_F(FinishFaults, ADeviceWithoutBinariesBuildsInTheDaemon) {
  SetOpenCl(1, 0, 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  EXPECT_EQ(Control().sources_built, 1);
  EXPECT_EQ(Control().binaries_built, 0);
  // The cache does not use the source in place of the binary that another build would give.
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  SetOpenCl(1, 1, 1);
  EXPECT_EQ(BuildsOf(AddGraph(50)), 1);
  EXPECT_EQ(Control().binaries_built, 1);
}

}  // namespace
}  // namespace kiln::testing

int main(int argc, char** argv) {
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::testing::CompileOrFinish);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
