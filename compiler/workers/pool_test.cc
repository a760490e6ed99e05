#include "compiler/workers/pool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/workers/worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::workers {
namespace {

using ::kiln::testing::Eventually;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kMemory = 256 << 20;

// `what` is one of the commands of workers_test_main.cc; `code` becomes the image's code.
KernelJob Job(const std::string& what, const std::string& code = "") {
  KernelJob job;
  job.name = absl::StrCat("kernel_", code);
  job.kernel = what;
  job.schedule = code;
  job.target.architecture = "x86-64";
  return job;
}

// Advances in real time only between Go and Stop: no job exceeds its limit outside of that.
// Thread-safe.
class StoppedClock {
 public:
  SteadyTime now() const {
    const SteadyTime stopped_at = stopped_at_;
    return stopped_at == SteadyTime::max() ? std::chrono::steady_clock::now() : stopped_at;
  }
  void Go() { stopped_at_ = SteadyTime::max(); }
  void Stop() { stopped_at_ = std::chrono::steady_clock::now(); }

 private:
  std::atomic<SteadyTime> stopped_at_ = std::chrono::steady_clock::now();
};

// A file to which each job appends a byte.
class Bytes {
 public:
  Bytes() { std::filesystem::remove(path_); }
  ~Bytes() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  int64_t count() const {
    std::error_code none;
    const auto size = std::filesystem::file_size(path_, none);
    return none ? 0 : static_cast<int64_t>(size);
  }

 private:
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/kiln_bytes_", getpid());
};

int CountOpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

class PoolTest : public ::testing::Test {
 protected:
  PoolTest() {
    options_.command = WorkerCommand(kMemory);
    options_.spares = 2;
    options_.memory_bytes_max = kMemory;
    options_.now = std::chrono::steady_clock::now;
    options_.on_failure = [this](const KernelJob&, const Failure& failure) {
      absl::MutexLock lock(&mutex_);
      failures_.push_back(failure);
    };
  }
  // Checks that no child process and no open file remains.
  ~PoolTest() override {
    pool_.reset();
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(CountOpenFiles(), open_files_);
  }
  Pool& pool() {
    if (!pool_) pool_ = std::make_unique<Pool>(options_);
    return *pool_;
  }
  void ExpectWorks() {
    const auto image = pool().Compile(Job("image", "works"));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->code, "works");
  }
  std::string ErrorOf(const std::string& what, absl::StatusCode code) {
    const absl::Status status = pool().Compile(Job(what)).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::vector<Failure> failures() {
    absl::MutexLock lock(&mutex_);
    return failures_;
  }

  const int open_files_ = CountOpenFiles();
  Pool::Options options_;
  std::unique_ptr<Pool> pool_;
  absl::Mutex mutex_;
  std::vector<Failure> failures_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(PoolTest, TheTimeLimitOfAWorkerThatYieldsIsOfTheTimeThatItGets) {
  StoppedClock clock;
  std::atomic<int64_t> minutes{0}, processor_seconds{0}, asked{0};
  options_.now = [&] { return clock.now() + std::chrono::minutes(minutes); };
  options_.yields = true;
  options_.seconds_max = 60;
  options_.processor_time = [&](pid_t) {
    ++asked;
    return std::chrono::seconds(processor_seconds);
  };
  const Bytes begun;
  absl::Status status;
  std::thread caller([&] { status = pool().Compile(Job("spin", begun.path())).status(); });
  ASSERT_TRUE(Eventually([&] { return begun.count() == 1; }));
  // It has waited for a processor for nearly an hour.
  minutes = Pool::kYieldingPart - 1;
  const int64_t before = asked;
  EXPECT_TRUE(Eventually([&] { return asked > before + 1; }));
  EXPECT_THAT(failures(), IsEmpty());
  processor_seconds = 60;
  caller.join();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(failures().at(0).kind, Failure::Kind::kLate);
  // One that gets no time for an hour does not wait for it.
  processor_seconds = 0;
  std::thread second([&] { status = pool().Compile(Job("spin", begun.path())).status(); });
  ASSERT_TRUE(Eventually([&] { return begun.count() == 2; }));
  minutes = 2 * Pool::kYieldingPart;
  second.join();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  pool_.reset();  // it uses the clocks
}

TEST_F(PoolTest, TheProcessorTimeOfAChildGrowsWhileItWorks) {
  StoppedClock clock;
  options_.now = [&] { return clock.now(); };
  const Bytes begun;
  absl::Status status;
  std::atomic<pid_t> worker{0};
  options_.yields = true;
  options_.seconds_max = 60;
  options_.processor_time = [&](pid_t pid) {
    worker = pid;
    return ProcessorTimeOf(pid);
  };
  std::thread caller([&] { status = pool().Compile(Job("spin", begun.path())).status(); });
  ASSERT_TRUE(Eventually([&] { return begun.count() == 1 && worker != 0; }));
  const auto before = ProcessorTimeOf(worker);
  EXPECT_TRUE(Eventually([&] { return ProcessorTimeOf(worker) > before; }));
  pool().Stop(absl::CancelledError("enough"));
  caller.join();
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_EQ(ProcessorTimeOf(worker), std::chrono::nanoseconds::zero());
  pool_.reset();  // it uses the clock
}

TEST_F(PoolTest, EachCallerGetsItsOwnAnswer) {
  pool();  // before there are threads
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([this, c] {
      for (int i = 0; i < 100; ++i) {
        const std::string code = absl::StrCat(c, "_", i);
        const auto image = pool().Compile(Job("image", code));
        ASSERT_TRUE(image.ok()) << image.status();
        EXPECT_EQ(image->code, code);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(failures(), IsEmpty());
  EXPECT_LE(pool().idle().size(), 4u);
}

TEST_F(PoolTest, CallersWaitWhereWorkersAreAsManyAsTheyMayBe) {
  options_.spares = 0;
  options_.workers_max = 2;
  pool();  // before there are threads
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([this] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(pool().Compile(Job("image")).ok());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(pool().idle().size(), 2u);
  // If a job kills two workers, there is a place for the second.
  EXPECT_FALSE(pool().Compile(Job("abort")).ok());
  EXPECT_EQ(failures().size(), 2u);
  ExpectWorks();
}

TEST_F(PoolTest, CallersHearWhenAWorkerBegins) {
  options_.spares = 0;
  options_.workers_max = 1;
  pool();  // before there are threads
  std::atomic<int> begun{0};
  KernelJob job = Job("image");
  job.on_begin = [&begun] { ++begun; };
  EXPECT_TRUE(pool().Compile(job).ok());
  EXPECT_EQ(begun, 1);
  // Once for each of the two workers.
  job.kernel = "abort";
  EXPECT_FALSE(pool().Compile(job).ok());
  EXPECT_EQ(begun, 3);
  pool().Stop(absl::CancelledError("stopped"));
  EXPECT_FALSE(pool().Compile(job).ok());
  EXPECT_EQ(begun, 3) << "no worker has begun";
}

TEST_F(PoolTest, WorkersGiveTheirErrors) {
  const absl::Status status = pool().Compile(Job("disproof")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "not the kernel");
  EXPECT_TRUE(status.GetPayload("kiln.disproof").has_value());
  EXPECT_THAT(failures(), IsEmpty());
}

TEST_F(PoolTest, AJobThatEndsTwoWorkersIsAtFault) {
  EXPECT_THAT(ErrorOf("abort", absl::StatusCode::kInternal),
              AllOf(HasSubstr("compiling it for x86-64 failed in two processes; the second one was "
                              "ended by SIGABRT"),
                    HasSubstr("(\"LLVM ERROR: Cannot select: \\x1B[31mplanted\")"),
                    HasSubstr("a defect of Kiln;")));
  ASSERT_EQ(failures().size(), 2u);
  EXPECT_TRUE(failures()[0].again);
  EXPECT_FALSE(failures()[1].again);
  ExpectWorks();
  EXPECT_THAT(ErrorOf("exit", absl::StatusCode::kInternal), HasSubstr("exited with status 3"));
  ExpectWorks();
}

TEST_F(PoolTest, WhatAVendorsCompilerDiesOfIsItsOwn) {
  KernelJob job = Job("abort");
  job.target.finisher.device = "a GPU, a vendor";
  job.unfinished.emplace();
  const absl::Status status = pool().Compile(job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("building it with the compiler of a GPU, a vendor failed in two"),
                    HasSubstr("a defect of that compiler;")));
}

TEST_F(PoolTest, AWorkerThatSomethingElseEndsCostsNothing) {
  const std::string mark = absl::StrCat(::testing::TempDir(), "/kiln_died_once_", getpid());
  const auto image = pool().Compile(Job("die once", mark));
  std::filesystem::remove(mark);
  EXPECT_TRUE(image.ok()) << image.status();
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_EQ(failures()[0].kind, Failure::Kind::kKilled);
  EXPECT_EQ(failures()[0].what, "was ended by SIGKILL");
}

TEST_F(PoolTest, IdleWorkersThatAreEndedAreReplaced) {
  ASSERT_TRUE(Eventually([this] { return pool().idle().size() == 2; }));
  for (const pid_t worker : pool().idle()) kill(worker, SIGKILL);
  EXPECT_TRUE(Eventually([this] { return pool().idle().empty(); }));
  ExpectWorks();
  EXPECT_THAT(failures(), IsEmpty());
  EXPECT_EQ(pool().idle().size(), 1u);
}

TEST_F(PoolTest, ATerminalsSignalsDoNotReachWorkers) {
  ASSERT_TRUE(Eventually([this] { return pool().idle().size() == 2; }));
  const std::vector<pid_t> before = pool().idle();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    for (const pid_t worker : before) kill(worker, signal);
  ExpectWorks();
  EXPECT_THAT(pool().idle(), ::testing::UnorderedElementsAreArray(before));
}

TEST_F(PoolTest, AJobThatTakesTooLongIsEnded) {
  // The pool outlives the test's local variables.
  auto clock = std::make_shared<StoppedClock>();
  options_.now = [clock] { return clock->now(); };
  options_.seconds_max = 1;
  ExpectWorks();
  clock->Go();
  EXPECT_THAT(ErrorOf("spin", absl::StatusCode::kResourceExhausted),
              AllOf(HasSubstr("took longer than 1 seconds"), HasSubstr("--compile_seconds_limit")));
  clock->Stop();
  EXPECT_EQ(failures().size(), 1u);
  ExpectWorks();
}

TEST(DeadlineTest, TellsWhatIsLeft) {
  SteadyTime now;
  const Deadline deadline([&] { return now; }, std::chrono::seconds(3));
  EXPECT_EQ(deadline.Milliseconds(), 1000);  // at most a second
  now += std::chrono::microseconds(2'999'001);
  EXPECT_EQ(deadline.Milliseconds(), 1);
  now += std::chrono::seconds(1);
  EXPECT_EQ(deadline.Milliseconds(), 0);
  EXPECT_EQ(Deadline().Milliseconds(), -1);
}

TEST_F(PoolTest, AJobThatTakesTooMuchMemoryIsEnded) {
  if (!kLimitsMemory) GTEST_SKIP() << "sanitizers reserve more memory than any limit";
  EXPECT_THAT(
      ErrorOf("eat", absl::StatusCode::kResourceExhausted),
      AllOf(HasSubstr("needed more than 268435456 bytes"), HasSubstr("--compile_memory_limit")));
  EXPECT_EQ(failures().size(), 1u);
  ExpectWorks();
}

TEST_F(PoolTest, WorkersHaveNoFilesOfTheirParents) {
  // A file that is not closed on exec, like those a vendor's library may open.
  const int file = open("/dev/null", O_RDONLY);
  pool();
  EXPECT_EQ(ErrorOf("files", absl::StatusCode::kUnknown), "0 1 2 3");
  EXPECT_EQ(ErrorOf("child", absl::StatusCode::kUnknown), "closed\n");
  EXPECT_EQ(ErrorOf("core", absl::StatusCode::kUnknown), "0");
  close(file);
}

TEST_F(PoolTest, WhatWorkersWriteHoldsUpNobody) {
  EXPECT_TRUE(pool().Compile(Job("chatter")).ok());
  EXPECT_TRUE(pool().Compile(Job("chatter")).ok());
  EXPECT_THAT(failures(), IsEmpty());
}

TEST_F(PoolTest, StopEndsWhatRuns) {
  const Bytes begun;
  std::atomic<int> ended{0};
  std::vector<std::thread> callers;
  pool();
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      EXPECT_EQ(pool().Compile(Job("spin", begun.path())).status(),
                absl::UnavailableError("it is enough"));
      ++ended;
    });
  }
  EXPECT_TRUE(Eventually([&] { return begun.count() == 3; }));
  EXPECT_EQ(ended, 0);
  pool().Stop(absl::UnavailableError("it is enough"));
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(pool().Compile(Job("image")).status(), absl::UnavailableError("it is enough"));
  EXPECT_THAT(failures(), IsEmpty());
}

TEST_F(PoolTest, StopWhileWorkersStart) {
  for (int i = 0; i < 5; ++i) {
    const Bytes begun;
    Pool pool(options_);
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back(
          [&] { (void)pool.Compile(Job("spin", begun.path())).status().IgnoreError(); });
    }
    // Workers start one after another.
    EXPECT_TRUE(Eventually([&] { return begun.count() >= i; }));
    pool.Stop(absl::UnavailableError("it is enough"));
    for (std::thread& caller : callers) caller.join();
  }
}

TEST_F(PoolTest, WorkersThatNobodyNeedsAnyMoreEnd) {
  // The pool outlives the test's local variables.
  auto seconds = std::make_shared<std::atomic<int64_t>>(0);
  options_.spares = 1;
  options_.now = [seconds] { return SteadyTime(std::chrono::seconds(*seconds)); };
  pool();
  const std::string meeting = absl::StrCat(::testing::TempDir(), "/kiln_meeting_", getpid());
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back(
        [&] { EXPECT_EQ(pool().Compile(Job("meet", meeting)).status(), absl::OkStatus()); });
  }
  for (std::thread& caller : callers) caller.join();
  std::filesystem::remove(meeting);
  EXPECT_EQ(pool().idle().size(), 3u);
  *seconds = 11;
  EXPECT_TRUE(Eventually([this] { return pool().idle().size() == 1; }));
  ExpectWorks();
}

TEST_F(PoolTest, WhatIsNoAnswerIsRefused) {
  // A worker that echoes its input.
  options_.command = {"/bin/sh", "-c", "exec cat <&3 >&3"};
  EXPECT_THAT(ErrorOf("image", absl::StatusCode::kInternal),
              AllOf(HasSubstr("returned an invalid answer"), Not(HasSubstr("second"))));
  EXPECT_EQ(failures().size(), 1u);
}

TEST_F(PoolTest, WorkersThatCannotStartAreAnError) {
  options_.command = {::testing::TempDir() + "/kiln_is_not_here"};
  EXPECT_THAT(ErrorOf("image", absl::StatusCode::kUnavailable),
              HasSubstr("cannot start a process: No such file"));
}

TEST_F(PoolTest, WorkersThatAllDieAtOnceAreAnError) {
  options_.command = {"/bin/false"};
  EXPECT_THAT(ErrorOf("image", absl::StatusCode::kInternal), HasSubstr("exited with status 1"));
}

}  // namespace
}  // namespace kiln::workers
