// Users who share a CPU device: a kernel that would hold it for minutes is stopped between two
// tasks of its grid, so that a training beside it gets every other turn. Checks the order of what
// the device runs, with a clock that advances with each reading.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gtest/gtest.h"
#include "kiln/client.h"
#include "kiln/ops.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

// Each reading of the device's clock is this much later than the previous one.
constexpr std::chrono::milliseconds kReading{3};
constexpr double kSliceSeconds = 0.010;
constexpr int64_t kElements = 1 << 18;

// A list that has ended, completely or with a remainder.
struct ListEnd {
  bool is_long = false;  // the kernel's list; otherwise a step's
  bool is_timed = false;
  double seconds = 0;
  int64_t begin = 0;  // task
  int64_t end = -1;   // -1: the list's end
};

// A CPU device whose lists can be held and are recorded.
class NotedDevice : public drivers::Device {
 public:
  explicit NotedDevice(std::unique_ptr<drivers::Device> device) : device_(std::move(device)) {}

  // Lists are not started until LetGo.
  void Hold() {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void LetGo() {
    std::vector<std::function<void()>> lists;
    {
      absl::MutexLock lock(&mutex_);
      held_ = false;
      lists.swap(lists_);
    }
    for (const auto& submit : lists) submit();
  }
  std::vector<ListEnd> TakeEnds() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(ends_, {});
  }

  const drivers::DeviceInfo& info() const override { return device_->info(); }
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> Allocate(int64_t bytes) override {
    return device_->Allocate(bytes);
  }
  int64_t cached_bytes() const override { return device_->cached_bytes(); }
  absl::StatusOr<std::unique_ptr<drivers::LoadedKernel>> LoadKernel(
      const drivers::KernelImage& image) override {
    return device_->LoadKernel(image);
  }
  bool CanReach(const drivers::Buffer& buffer) const override { return device_->CanReach(buffer); }
  absl::StatusOr<std::unique_ptr<drivers::PreparedList>> Prepare(
      drivers::CommandList list) override {
    return device_->Prepare(std::move(list));
  }
  absl::Status Submit(drivers::PreparedList& list, absl::Span<drivers::Buffer* const> slots,
                      drivers::SubmitOptions options,
                      std::function<void(drivers::SubmitResult)> done) override {
    const bool is_long = slots.front()->bytes() == kElements * sizeof(float);
    const int64_t begin = options.begin.task;
    const bool is_timed = options.time_commands;
    auto note = [this, is_long, is_timed, begin,
                 done = std::move(done)](drivers::SubmitResult result) {
      {
        absl::MutexLock lock(&mutex_);
        ends_.push_back(
            {is_long, is_timed, result.seconds, begin, result.rest ? result.rest->task : -1});
      }
      done(std::move(result));
    };
    absl::MutexLock lock(&mutex_);
    if (!held_) return device_->Submit(list, slots, std::move(options), std::move(note));
    lists_.push_back([this, &list, slots = std::vector(slots.begin(), slots.end()), options, note] {
      EXPECT_TRUE(device_->Submit(list, slots, options, note).ok());
    });
    return absl::OkStatus();
  }
  void StopUnwanted() override { device_->StopUnwanted(); }
  bool stops_lists() const override { return device_->stops_lists(); }
  bool yields() const override { return device_->yields(); }
  absl::Status StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                 absl::Span<const char> source, CopyDone done) override {
    return device_->StartCopyToDevice(destination, offset, source, std::move(done));
  }
  absl::Status StartCopyToHost(const drivers::Buffer& source, int64_t offset,
                               absl::Span<char> destination, CopyDone done) override {
    return device_->StartCopyToHost(source, offset, destination, std::move(done));
  }
  absl::Status Synchronize() override { return device_->Synchronize(); }
  absl::Status Health() override { return device_->Health(); }
  absl::Status Revive() override { return device_->Revive(); }

 private:
  const std::unique_ptr<drivers::Device> device_;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> lists_ ABSL_GUARDED_BY(mutex_);
  std::vector<ListEnd> ends_ ABSL_GUARDED_BY(mutex_);
};

class SharingTest : public ::testing::TestWithParam<int> {
 protected:
  // The number of the device's threads. With several, waiting threads also read the clock,
  // arbitrarily often.
  int threads() const { return GetParam(); }

  SharingTest() {
    std::string why_none;
    auto now = [ticks = std::make_shared<std::atomic<int64_t>>(0)] {
      return drivers::SteadyTime(kReading * ticks->fetch_add(1));
    };
    auto devices =
        drivers::cpu::CpuDriver({.threads_per_device = threads(), .now = now}).Enumerate(&why_none);
    EXPECT_TRUE(devices.ok()) << devices.status();
    auto device = std::make_unique<NotedDevice>(std::move(devices->front()));
    device_ = device.get();
    std::vector<std::unique_ptr<drivers::Device>> noted;
    noted.push_back(std::move(device));
    TestDaemonOptions options;
    options.compile = compiler::Compile;
    options.driver = std::make_unique<FakeDriver>(std::move(noted));
    daemon_ = std::make_unique<TestDaemon>(std::move(options));
    owner_ = std::make_unique<Client>(daemon_->address());
    trainer_ = Open("ann");
    heavy_ = Open("bob");
  }

  std::unique_ptr<kiln::Client> Open(const std::string& user) {
    const std::string token = AddUser(*owner_, user, "");
    auto client = kiln::Client::Connect({.address = daemon_->daemon().listening()[1],
                                         .token = token,
                                         .timeout = kPatience,
                                         .closing_timeout = kPatience});
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // One kernel with many tasks.
  static absl::StatusOr<Graph> OneKernel() {
    GraphBuilder builder;
    const Value x = builder.Input(DType::kFloat32, {kElements});
    builder.Output(ops::Sin(x) * x + x);
    return builder.Build();
  }
  // A gradient descent step on the squares of w - 3.
  static absl::StatusOr<Graph> Step() {
    GraphBuilder builder;
    const Value w = builder.Input(DType::kFloat32, {64});
    builder.Output(w - (w - 3.0f) * 0.125f);
    return builder.Build();
  }

  // Sends steps, each of which depends on the one before. Returns the last result.
  Tensor Train(int steps) {
    Tensor w = *trainer_->Upload<float>({64}, std::vector<float>(64, 1000));
    for (int i = 0; i < steps; ++i) w = trainer_->Run(*step_, {w})->outputs[0];
    return w;
  }
  std::vector<RunResult> RunOneKernel(int copies) {
    const Tensor x = *heavy_->Upload<float>({kElements}, std::vector<float>(kElements, 1));
    std::vector<RunResult> runs;
    for (int i = 0; i < copies; ++i) runs.push_back(*heavy_->Run(*one_kernel_, {x}));
    return runs;
  }
  // Returns the number of waiting operations of all users, in the daemon's queue.
  int64_t Waiting() {
    grpc::ClientContext context;
    v1::ListUsersResponse response;
    EXPECT_TRUE(owner_->admin->ListUsers(&context, {}, &response).ok());
    int64_t waiting = 0;
    for (const auto& user : response.users())
      for (const auto& use : user.devices()) waiting += static_cast<int64_t>(use.waiting());
    return waiting;
  }

  NotedDevice* device_ = nullptr;
  std::unique_ptr<TestDaemon> daemon_;
  std::unique_ptr<Client> owner_;
  std::unique_ptr<kiln::Client> trainer_, heavy_;
  std::unique_ptr<Program> step_, one_kernel_;
};

TEST_P(SharingTest, ATrainingGetsATurnAfterEachSliceOfALongKernel) {
  constexpr int kSteps = 100, kCopies = 20;
  step_ = std::make_unique<Program>(*trainer_->Define(Step(), "step"));
  one_kernel_ = std::make_unique<Program>(*heavy_->Define(OneKernel(), "one kernel"));
  const std::string alone = *trainer_->DownloadBytes(Train(kSteps));
  const std::string expected = *heavy_->DownloadBytes(RunOneKernel(1)[0].outputs[0]);
  device_->TakeEnds();

  device_->Hold();
  const std::vector<RunResult> copies = RunOneKernel(kCopies);
  const Tensor last = Train(kSteps);
  // The first list that the device got is held by it and does not wait.
  ASSERT_TRUE(Eventually([&] { return Waiting() >= kSteps + kCopies - 1; }));
  device_->LetGo();
  EXPECT_EQ(*trainer_->DownloadBytes(last), alone);
  for (const RunResult& copy : copies) EXPECT_EQ(*heavy_->DownloadBytes(copy.outputs[0]), expected);

  int steps = 0, in_a_row = 0, in_the_middle = 0;
  for (const ListEnd& list : device_->TakeEnds()) {
    if (!list.is_long) {
      ++steps;
      in_a_row = 0;
      continue;
    }
    if (steps == kSteps) break;
    EXPECT_LE(++in_a_row, 1) << "after step " << steps;
    if (list.end > 0) ++in_the_middle;
    if (threads() > 1) continue;
    // A slice, and the task in which it ends. Between two tasks the clock is read twice, and once
    // more for the time of the kernel.
    const int readings = list.is_timed ? 4 : 3;
    EXPECT_LE(list.seconds,
              kSliceSeconds + readings * std::chrono::duration<double>(kReading).count());
    EXPECT_LE(list.end - list.begin, 2);
  }
  EXPECT_EQ(steps, kSteps);
  // Each has half of the time, and a slice is as long as several steps.
  EXPECT_GT(in_the_middle, 4);
}

TEST_P(SharingTest, ALongKernelThatIsAloneIsNotStopped) {
  one_kernel_ = std::make_unique<Program>(*heavy_->Define(OneKernel(), "one kernel"));
  for (const RunResult& copy : RunOneKernel(3)) ASSERT_TRUE(copy.done.Get().ok());
  for (const ListEnd& list : device_->TakeEnds()) EXPECT_EQ(list.end, -1);
}

INSTANTIATE_TEST_SUITE_P(Threads, SharingTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace kiln::testing
