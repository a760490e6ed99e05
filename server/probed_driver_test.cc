#include "server/probed_driver.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using testing::HasSubstr;

// Counts calls of Enumerate.
class CountedDriver : public drivers::Driver {
 public:
  explicit CountedDriver(int* asked) : asked_(asked) {}
  std::string name() const override { return "opencl"; }
  absl::StatusOr<std::vector<std::unique_ptr<drivers::Device>>> Enumerate(
      std::string* why_none) override {
    ++*asked_;
    *why_none = "there are none";
    return std::vector<std::unique_ptr<drivers::Device>>();
  }

 private:
  int* const asked_;
};

// Reports whether processes started meanwhile would inherit the probe's socket.
class SocketDriver : public drivers::Driver {
 public:
  std::string name() const override { return "opencl"; }
  absl::StatusOr<std::vector<std::unique_ptr<drivers::Device>>> Enumerate(std::string*) override {
    const int flags = fcntl(workers::Process::kSocket, F_GETFD);
    std::fputs(flags == FD_CLOEXEC ? "closed on exec" : "left open", stderr);
    return std::vector<std::unique_ptr<drivers::Device>>();
  }
};

TEST(ProbeTest, LeavesItsSocketToNoOtherProcess) {
  SocketDriver driver;
  EXPECT_EXIT(
      {
        dup2(STDERR_FILENO, workers::Process::kSocket);
        Probe(driver);
      },
      testing::ExitedWithCode(0), "closed on exec");
}

class ProbedDriverTest : public testing::Test {
 protected:
  // Returns the driver's reason after a probe that runs this in a shell.
  std::string WhyNone(const std::string& probe) {
    ProbedDriver driver(std::make_unique<CountedDriver>(&asked_),
                        {.command = {"/bin/sh", "-c", probe}, .time_max = time_max_});
    EXPECT_EQ(driver.name(), "opencl");
    std::string why_none, again;
    EXPECT_TRUE(driver.Enumerate(&why_none).ok());
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "it left a process behind";
    EXPECT_TRUE(driver.Enumerate(&again).ok());
    EXPECT_EQ(again, why_none);
    return why_none;
  }

  int asked_ = 0;
  std::chrono::milliseconds time_max_{30'000};
};

TEST_F(ProbedDriverTest, IsAskedWhereTheProbeEndsWell) {
  EXPECT_EQ(WhyNone("exit 0"), "there are none");
  EXPECT_EQ(asked_, 2);
}

TEST_F(ProbedDriverTest, IsLeftOutWhereTheProbeDies) {
  EXPECT_THAT(WhyNone("echo no GPU >&2; kill -SEGV $$"),
              testing::AllOf(HasSubstr("was ended by SIGSEGV (\"no GPU\")"),
                             HasSubstr("repair the vendor's driver")));
  EXPECT_THAT(WhyNone("exit 7"), HasSubstr("exited with status 7"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ProbedDriverTest, IsLeftOutWhereTheProbeHangs) {
  time_max_ = std::chrono::milliseconds(50);
  EXPECT_THAT(WhyNone("exec sleep 1000"), HasSubstr("did not finish within 50 ms"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ProbedDriverTest, AProbeThatSpeaksIsNotWaitedFor) {
  EXPECT_THAT(WhyNone("printf 12345678 >&3; exec sleep 1000"), HasSubstr("was ended by SIGKILL"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ProbedDriverTest, ACommandThatIsNotThereIsTheReason) {
  ProbedDriver driver(std::make_unique<CountedDriver>(&asked_),
                      {.command = {testing::TempDir() + "/kiln_is_not_here"}});
  std::string why_none;
  EXPECT_TRUE(driver.Enumerate(&why_none).ok());
  EXPECT_THAT(why_none, HasSubstr("cannot start a process"));
  EXPECT_EQ(asked_, 0);
}

TEST(MayBeInstalled, LooksWithoutOpening) {
  EXPECT_TRUE(MayBeInstalled("libc.so.6"));
  if (std::getenv("LD_LIBRARY_PATH") == nullptr) {
    EXPECT_FALSE(MayBeInstalled("libkiln_is_not_here.so.1"));
  }
}

}  // namespace
}  // namespace kiln
