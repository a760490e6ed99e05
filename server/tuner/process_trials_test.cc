// Trials in other processes, on this machine's processor, with machine code that no compiler makes.
#include "server/tuner/process_trials.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/workers/worker.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/kernel_trials.h"
#include "server/tuner/trial_process.h"

namespace kiln::tuner {
namespace {

using kernel::Sample;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr double kAmple = 600;
constexpr char kDoubling[] = R"(buffer b0 float32[16] read
buffer b1 float32[16] write
stage r0:16
  b1[r0] = b0[r0] + b0[r0]
)";

// x86-64 code. rdi points at the addresses of the buffers.
#define CODE(bytes) std::string(bytes, sizeof(bytes) - 1)
const std::string kReturns = CODE("\xc3");
const std::string kInvalid = CODE("\x0f\x0b");  // ud2
// xor eax, eax; mov dword [rax], 1; ret
const std::string kStoresToNull = CODE("\x31\xc0\xc7\x00\x01\x00\x00\x00\xc3");
// xor ecx, ecx; xor edx, edx; xor eax, eax; div ecx; ret
const std::string kDividesByZero = CODE("\x31\xc9\x31\xd2\x31\xc0\xf7\xf1\xc3");
const std::string kCallsItself = CODE("\xe8\xfb\xff\xff\xff");  // until the stack ends
const std::string kLoops = CODE("\xeb\xfe");
// push -1; mov rsi, rsp; xor edi, edi; xor edx, edx; mov r10d, 8; mov eax, 14; syscall; jmp $
const std::string kLoopsAndBlocksSignals = CODE(
    "\x6a\xff\x48\x89\xe6\x31\xff\x31\xd2\x41\xba\x08\x00\x00\x00\xb8\x0e\x00\x00\x00\x0f\x05\xeb"
    "\xfe");
// mov rax, [rdi + 8]; mov dword [rax + 64 + 12], 1; ret
const std::string kWritesPastItsOutput =
    CODE("\x48\x8b\x47\x08\xc7\x80\x4c\x00\x00\x00\x01\x00\x00\x00\xc3");
// mov edi, 3; mov eax, 231; syscall
const std::string kExits = CODE("\xbf\x03\x00\x00\x00\xb8\xe7\x00\x00\x00\x0f\x05");
// mov eax, 39; syscall; mov edi, eax; mov esi, 9; mov eax, 62; syscall; ret
const std::string kIsKilled = CODE(
    "\xb8\x27\x00\x00\x00\x0f\x05\x89\xc7\xbe\x09\x00\x00\x00\xb8\x3e\x00\x00\x00\x0f\x05\xc3");
// mov rdi, [rdi]; and rdi, -4096; mov esi, 4096; mov eax, 11; syscall; ret
const std::string kUnmapsItsInput = CODE(
    "\x48\x8b\x3f\x48\x81\xe7\x00\xf0\xff\xff\xbe\x00\x10\x00\x00\xb8\x0b\x00\x00\x00\x0f\x05"
    "\xc3");
#undef CODE

// The device of the processes, which are this executable again.
absl::StatusOr<std::unique_ptr<drivers::Device>> OpenProcessor() {
  std::string why_none;
  auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  if (devices->empty()) return absl::NotFoundError(why_none);
  return std::move(devices->front());
}

drivers::KernelImage PlantedImage(const std::string& code) {
  drivers::KernelImage image;
  image.name = "planted";
  image.architecture = "x86-64";
  image.code = code;
  image.num_arguments = 2;
  return image;
}

class ProcessTrialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenProcessor();
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    kernel_ = *kernel::ParseKernel(kDoubling, context_);
    Start({});
  }

  void Start(ProcessTrials::Options options) {
    options.command = {"/proc/self/exe", "--trials"};
    options.on_lost = [this](const std::string& why) { lost_.push_back(why); };
    auto trials = ProcessTrials::Make(kernel_, target(), /*seed=*/1, std::move(options));
    ASSERT_TRUE(trials.ok()) << trials.status();
    trials_ = *std::move(trials);
  }

  const drivers::Target& target() const { return device_->info().target; }
  drivers::KernelImage Compiled() const {
    return *compiler::CompileJob(
        {.name = "doubling", .kernel = kernel::Print(kernel_), .schedule = "", .target = target()});
  }
  std::unique_ptr<Trial> Load(const drivers::KernelImage& image) {
    auto trial = trials_->Load(image);
    EXPECT_TRUE(trial.ok()) << trial.status();
    return *std::move(trial);
  }
  std::unique_ptr<Trial> Plant(const std::string& code) { return Load(PlantedImage(code)); }

  // Expects that the code ends its process and no other trial.
  void ExpectLost(const std::string& code, const std::string& why) {
    const auto incumbent = Load(Compiled());
    ASSERT_TRUE(incumbent->Time(1, kAmple).ok());
    const auto planted = Plant(code);
    const absl::Status status = planted->Time(1, kAmple).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    // Sanitizers report signals in their own way.
    EXPECT_THAT(status.message(), HasSubstr(workers::kLimitsMemory ? why : "its process "));
    // Once with the incumbent in its process, and once alone.
    EXPECT_THAT(lost_, SizeIs(2));
    EXPECT_EQ(planted->Run({Sample::kRandom}, kAmple).status(), status);
    EXPECT_THAT(lost_, SizeIs(2));
    EXPECT_TRUE(incumbent->Time(3, kAmple).ok());
    EXPECT_TRUE(Plant(kReturns)->Time(1, kAmple).ok());
    EXPECT_THAT(lost_, SizeIs(2));
  }

  std::unique_ptr<drivers::Device> device_;
  ir::Context context_;
  kernel::Kernel kernel_;
  std::vector<std::string> lost_;
  std::unique_ptr<ProcessTrials> trials_;
};

TEST_F(ProcessTrialsTest, RunsAsThisProcessDoes) {
  const drivers::KernelImage image = Compiled();
  auto here = DeviceTrials::Make(*device_, kernel_, /*seed=*/1);
  ASSERT_TRUE(here.ok());
  const auto trial_here = (*here)->Load(image);
  const auto trial = Load(image);
  for (const Sample sample : kernel::Samples()) {
    const auto want = (*trial_here)->Run({sample}, kAmple);
    ASSERT_TRUE(trials_->Prepare({sample}).ok());
    const auto got = trial->Run({sample}, kAmple);
    ASSERT_TRUE(want.ok() && got.ok()) << got.status();
    EXPECT_EQ(*want, *got);
  }
  const auto seconds = trial->Time(5, kAmple);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_GT(*seconds, 0);
  EXPECT_THAT(lost_, SizeIs(0));
}

TEST_F(ProcessTrialsTest, OutputsMayBeLargerThanOneMessage) {
  kernel_ = *kernel::ParseKernel(
      "buffer b0 float32[5000001] write\nbuffer b1 float32[3] write\n"
      "stage r0:5000001\n  b0[r0] = 1.5:float32\nstage r1:3\n  b1[r1] = 2.5:float32\n",
      context_);
  Start({});
  const auto outputs = Load(Compiled())->Run({Sample::kRandom}, kAmple);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_THAT(outputs->at(0), SizeIs(4 * 5000001));
  EXPECT_THAT(outputs->at(1), SizeIs(12));
  const auto* floats = reinterpret_cast<const float*>(outputs->at(0).data());
  EXPECT_EQ(floats[0], 1.5f);
  EXPECT_EQ(floats[5000000], 1.5f);
}

TEST_F(ProcessTrialsTest, AnInvalidInstructionEndsOnlyItsProcess) {
  ExpectLost(kInvalid, "its process was ended by SIGILL");
}
TEST_F(ProcessTrialsTest, AStoreToNullEndsOnlyItsProcess) {
  ExpectLost(kStoresToNull, "its process was ended by SIGSEGV");
}
TEST_F(ProcessTrialsTest, ADivisionByZeroEndsOnlyItsProcess) {
  ExpectLost(kDividesByZero, "its process was ended by SIGFPE");
}
TEST_F(ProcessTrialsTest, EndlessRecursionEndsOnlyItsProcess) {
  ExpectLost(kCallsItself, "its process was ended by SIGSEGV");
}
TEST_F(ProcessTrialsTest, AnExitEndsOnlyItsProcess) {
  ExpectLost(kExits, "its process exited with status 3");
}

TEST_F(ProcessTrialsTest, StopsAnEndlessLoop) {
  const auto incumbent = Load(Compiled());
  const auto endless = Plant(kLoops);
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless->Time(1, 0).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless->Run({Sample::kOdd}, 0).status()));
  EXPECT_TRUE(incumbent->Run({Sample::kOdd}, kAmple).ok());
}

TEST_F(ProcessTrialsTest, EndsAProcessThatDoesNotAnswer) {
  Start({.command = {}, .patience_seconds = 0.01});
  const auto incumbent = Load(Compiled());
  ASSERT_TRUE(incumbent->Time(1, kAmple).ok());
  const auto endless = Plant(kLoopsAndBlocksSignals);
  absl::Status status;
  // If the process stops the run before it has begun, it answers.
  while (lost_.empty()) {
    status = endless->Time(1, 0).status();
    ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  }
  EXPECT_THAT(status.message(), HasSubstr("its process did not answer within "));
  EXPECT_TRUE(incumbent->Time(1, kAmple).ok());
}

TEST_F(ProcessTrialsTest, ReportsWritesOutsideTheOutputs) {
  const auto incumbent = Load(Compiled());
  ASSERT_TRUE(incumbent->Time(1, kAmple).ok());
  const auto stray = Plant(kWritesPastItsOutput);
  const pid_t before = trials_->pid();
  const absl::Status status = stray->Run({Sample::kRandom}, kAmple).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("12 bytes after buffer b1"));
  // It may have written to other places, so nothing else runs there.
  EXPECT_TRUE(incumbent->Run({Sample::kRandom}, kAmple).ok());
  EXPECT_NE(trials_->pid(), before);
}

TEST_F(ProcessTrialsTest, ACrashIsNotBlamedOnTheNextTrial) {
  const auto incumbent = Load(Compiled());
  ASSERT_TRUE(incumbent->Time(1, kAmple).ok());
  const auto planted = Plant(kUnmapsItsInput);
  ASSERT_TRUE(planted->Time(1, kAmple).ok());
  const auto seconds = incumbent->Time(1, kAmple);
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_THAT(lost_, SizeIs(1));
}

TEST_F(ProcessTrialsTest, BoundsTheMemoryOfTheProcess) {
  if (!workers::kLimitsMemory) GTEST_SKIP() << "a sanitizer's process has no limit";
  Start({.command = {}, .memory_bytes_max = int64_t{64} << 20});
  const auto incumbent = Load(Compiled());
  const auto large = trials_->Load(PlantedImage(std::string(size_t{80} << 20, '\xc3')));
  EXPECT_TRUE(absl::IsResourceExhausted(large.status())) << large.status();
  EXPECT_THAT(large.status().message(), HasSubstr("needed more than 67108864 bytes of memory"));
  EXPECT_TRUE(incumbent->Time(1, kAmple).ok());
}

TEST_F(ProcessTrialsTest, ATrialThatIsKilledIsRepeatedOnce) {
  const auto killed = Plant(kIsKilled);
  const absl::Status status = killed->Time(1, kAmple).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(status.message(), HasSubstr("SIGKILL"));
  EXPECT_THAT(lost_, SizeIs(2));
  // Something else may have killed it, so it may run again.
  EXPECT_FALSE(killed->Time(1, kAmple).ok());
  EXPECT_THAT(lost_, SizeIs(4));
}

TEST_F(ProcessTrialsTest, SurvivesKillsFromOutside) {
  const auto incumbent = Load(Compiled());
  ASSERT_EQ(kill(trials_->pid(), SIGKILL), 0);
  EXPECT_TRUE(incumbent->Time(1, kAmple).ok());
  const auto endless = Plant(kLoops);
  std::atomic<bool> ended = false;
  std::thread killer([&] {
    while (!ended) {
      if (const pid_t pid = trials_->pid(); pid != 0) kill(pid, SIGKILL);
    }
  });
  EXPECT_FALSE(endless->Time(1, kAmple).ok());
  ended = true;
  killer.join();
  EXPECT_TRUE(incumbent->Run({Sample::kEqual}, kAmple).ok());
}

TEST_F(ProcessTrialsTest, OutlivesTheThreadThatStartedTheProcess) {
  std::unique_ptr<Trial> trial;
  std::thread([&] {
    Start({});
    trial = Load(Compiled());
  }).join();
  EXPECT_TRUE(trial->Time(1, kAmple).ok());
}

TEST_F(ProcessTrialsTest, StopEndsARunningTrial) {
  const auto endless = Plant(kLoops);
  std::thread stopper([this] { trials_->Stop(absl::CancelledError("enough")); });
  EXPECT_EQ(endless->Time(1, kAmple).status(), absl::CancelledError("enough"));
  stopper.join();
  EXPECT_EQ(trials_->Load(Compiled()).status(), absl::CancelledError("enough"));
  EXPECT_EQ(trials_->Prepare({Sample::kOdd}), absl::CancelledError("enough"));
  EXPECT_THAT(lost_, SizeIs(0));
}

TEST_F(ProcessTrialsTest, LeavesTheRepetitionToItsCaller) {
  ProcessTrials::Options options;
  options.repeats = false;
  Start(std::move(options));
  const auto incumbent = Load(Compiled());
  ASSERT_TRUE(incumbent->Time(1, kAmple).ok());
  const auto planted = Plant(kInvalid);
  // The incumbent ran in that process, too.
  EXPECT_TRUE(absl::IsAborted(planted->Time(1, kAmple).status()));
  EXPECT_EQ(trials_->pid(), 0);
  ASSERT_TRUE(planted->Load().ok());
  const pid_t second = trials_->pid();
  EXPECT_NE(second, 0);
  const absl::Status status = planted->Time(1, kAmple).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(lost_, SizeIs(2));
  EXPECT_EQ(planted->Load(), status);
  EXPECT_TRUE(incumbent->Time(1, kAmple).ok());
}

TEST_F(ProcessTrialsTest, APauseEndsTheProcessAndBlamesNobody) {
  const auto trial = Load(Compiled());
  const auto endless = Plant(kLoops);
  std::thread running([&] { EXPECT_TRUE(absl::IsAborted(endless->Time(1, kAmple).status())); });
  trials_->Pause();
  running.join();
  EXPECT_TRUE(absl::IsAborted(trial->Time(1, kAmple).status()));
  EXPECT_TRUE(absl::IsAborted(trials_->Prepare({Sample::kOdd})));
  EXPECT_TRUE(absl::IsAborted(trials_->Load(Compiled()).status()));
  trials_->Resume();
  EXPECT_TRUE(trial->Time(1, kAmple).ok());
  // It has failed nowhere.
  EXPECT_TRUE(endless->Load().ok());
  EXPECT_THAT(lost_, SizeIs(0));
  // Pauses may be over before the trial notices them.
  std::atomic<bool> ended = false;
  std::thread pauses([&] {
    while (!ended) {
      trials_->Pause();
      trials_->Resume();
    }
  });
  EXPECT_TRUE(absl::IsAborted(endless->Time(1, kAmple).status()));
  ended = true;
  pauses.join();
  EXPECT_TRUE(endless->Load().ok());
  EXPECT_TRUE(trial->Time(1, kAmple).ok());
  EXPECT_THAT(lost_, SizeIs(0));
}

TEST_F(ProcessTrialsTest, MemoryThatUsersNeedIsGivenUp) {
  ProcessTrials::Options::GiveUp give_up;
  int charged = 0;
  ProcessTrials::Options options;
  options.charge = [&](ProcessTrials::Options::GiveUp given) {
    ++charged;
    give_up = std::move(given);
    return std::make_shared<int>();
  };
  Start(std::move(options));
  const auto trial = Load(Compiled());
  ASSERT_TRUE(trial->Time(1, kAmple).ok());
  const pid_t pid = trials_->pid();
  // A search that a user has asked for keeps its memory.
  EXPECT_FALSE(give_up());
  int yielded = 0;
  trials_->SetOnYield([&] { ++yielded; });
  EXPECT_TRUE(give_up());
  EXPECT_EQ(yielded, 1);
  // No thread has waited for the process yet.
  siginfo_t ended{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ended.si_status, SIGKILL);
  EXPECT_TRUE(absl::IsAborted(trial->Time(1, kAmple).status()));
  EXPECT_TRUE(absl::IsAborted(trials_->Prepare({})));
  EXPECT_EQ(charged, 1);
  trials_->Pause();  // returns the charge
  trials_->Resume();
  EXPECT_TRUE(trial->Time(1, kAmple).ok());
  EXPECT_EQ(charged, 2);
  EXPECT_THAT(lost_, SizeIs(0));
  trials_->SetOnYield(nullptr);
}

TEST_F(ProcessTrialsTest, TheProcessEndsWithTheRunner) {
  const pid_t pid = trials_->pid();
  ASSERT_EQ(kill(pid, 0), 0);
  trials_.reset();
  EXPECT_NE(kill(pid, 0), 0);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(ProcessTrialsTest, ReportsWhatTheDeviceRefuses) {
  drivers::KernelImage image = Compiled();
  image.num_arguments = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(trials_->Load(image).status()));
  image.num_arguments = 2;
  image.architecture = "z80";
  EXPECT_TRUE(absl::IsInvalidArgument(trials_->Load(image).status()));
  EXPECT_TRUE(Load(Compiled())->Time(1, kAmple).ok());
  EXPECT_THAT(lost_, SizeIs(0));
}

TEST_F(ProcessTrialsTest, ReportsWhyItCannotBegin) {
  ProcessTrials::Options options;
  options.command = {"/nonexistent"};
  EXPECT_TRUE(absl::IsUnavailable(ProcessTrials::Make(kernel_, target(), 1, options).status()));
  options.command = {"/bin/false"};
  const absl::Status status = ProcessTrials::Make(kernel_, target(), 1, options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("exited with status 1"));
  options.command = {"/proc/self/exe", "--trials"};
  drivers::Target other = target();
  other.processor = "other";
  EXPECT_TRUE(absl::IsFailedPrecondition(ProcessTrials::Make(kernel_, other, 1, options).status()));
}

TEST_F(ProcessTrialsTest, ASearchGoesOnAfterACrash) {
  const auto candidate = [](const std::string& schedule) {
    return search::Candidate{{}, *schedule::Parse(schedule)};
  };
  const search::Candidate heuristic = candidate(""), crash = candidate("split 0 4\n"),
                          right = candidate("split 0 8\n");
  KernelTrials measurer(
      kernel_, target(),
      [&](const workers::KernelJob& job) -> absl::StatusOr<drivers::KernelImage> {
        if (job.schedule == schedule::Print(crash.schedule)) return PlantedImage(kInvalid);
        return compiler::CompileJob(job);
      },
      *trials_,
      {.rounds = 2, .confirming_rounds = 2, .run_seconds_max = kAmple, .patience_seconds = kAmple});
  const auto first = measurer.Measure(nullptr, {&heuristic, 1}).at(0);
  ASSERT_TRUE(first.ok()) << first.status();
  const search::Measured incumbent{heuristic, *first};
  const auto timings = measurer.Measure(&incumbent, std::vector{crash, right});
  EXPECT_THAT(timings.at(0).status().message(), HasSubstr("its process "));
  EXPECT_TRUE(timings.at(1).ok()) << timings.at(1).status();
  const auto confirmed = measurer.Confirm(incumbent, right);
  EXPECT_TRUE(confirmed.ok()) << confirmed.status();
  EXPECT_FALSE(measurer.Confirm(incumbent, crash).ok());
}

}  // namespace
}  // namespace kiln::tuner

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--trials")
    kiln::tuner::RunTrialProcess(kiln::tuner::OpenProcessor);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
