#include "server/runtime/first_call.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/run/run.h"
#include "server/runtime/testing/copy_source.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;

class FirstCallTest : public ::testing::Test {
 protected:
  FirstCall Make(std::string_view part) {
    return FirstCall([this] { return now_; }, part, [this] { return faults_; });
  }
  static std::vector<std::string> Text(const FirstCall& call) {
    std::vector<std::string> text;
    for (const FirstCall::Part& part : call.parts())
      text.push_back(
          absl::StrCat(part.name, " ", absl::FormatDuration(part.time), " ", part.page_faults));
    return text;
  }
  static absl::Duration Sum(const FirstCall& call) {
    absl::Duration sum = absl::ZeroDuration();
    for (const FirstCall::Part& part : call.parts()) sum += part.time;
    return sum;
  }

  absl::Time now_ = absl::UnixEpoch();
  int64_t faults_ = 100;
};

TEST_F(FirstCallTest, PartsFollowOneAnotherAndAddUp) {
  FirstCall call = Make("decode");
  now_ += absl::Seconds(1);
  call.Begin("compile");
  now_ += absl::Seconds(2);
  faults_ += 7;
  call.Begin("run");
  now_ += absl::Seconds(3);
  EXPECT_EQ(call.progress().part, "run");
  EXPECT_EQ(call.progress().time, absl::Seconds(6));
  EXPECT_EQ(call.total(), absl::Seconds(6));
  EXPECT_FALSE(call.has_ended());
  call.End();
  now_ += absl::Seconds(4);
  call.Begin("later");
  call.End();
  EXPECT_TRUE(call.has_ended());
  EXPECT_THAT(Text(call), ElementsAre("decode 1s 0", "compile 2s 7", "run 3s 0"));
  EXPECT_EQ(call.total(), absl::Seconds(6));
}

TEST_F(FirstCallTest, APartThatComesAgainGoesOn) {
  FirstCall call = Make("compile");
  now_ += absl::Seconds(1);
  call.Begin("load");
  now_ += absl::Seconds(1);
  call.Begin("compile");
  now_ += absl::Seconds(5);
  call.End();
  EXPECT_THAT(Text(call), ElementsAre("compile 6s 0", "load 1s 0"));
}

TEST_F(FirstCallTest, PassesAreTakenOutOfTheirPart) {
  FirstCall call = Make("compile");
  now_ += absl::Seconds(10);
  call.TakeOut({{.pass = "simplify", .seconds = 1},
                {.pass = "emit", .seconds = 6, .parts = {{"wait_for_worker", 2}, {"compile", 3}}}});
  now_ += absl::Seconds(1);
  call.Begin("load");
  now_ += absl::Seconds(2);
  call.End();
  EXPECT_THAT(Text(call),
              ElementsAre("simplify 1s 0", "emit.wait_for_worker 2s 0", "emit.compile 3s 0",
                          "emit 1s 0", "compile 4s 0", "load 2s 0"));
  EXPECT_EQ(Sum(call), call.total());
}

TEST_F(FirstCallTest, CountsKernels) {
  FirstCall call = Make("compile");
  call.CountKernels(3, 0);
  call.CountKernels(0, 1);
  call.CountKernels(2, 0);  // of another segment
  call.CountKernels(0, 1);
  EXPECT_EQ(call.progress().kernels, 5);
  EXPECT_EQ(call.progress().kernels_made, 2);
}

// The daemon's parts of a first call, with a clock that advances with every step that takes time,
// and with every read of the clock.
class FirstCallOfProgramTest : public ::testing::Test {
 protected:
  class SlowSource : public kiln::testing::CopySource {
   public:
    SlowSource(FirstCallOfProgramTest& test, std::string key)
        : CopySource(std::move(key), 4), test_(test) {}
    absl::StatusOr<graph::Graph> Build(const Bindings& bindings, const Grow& grow,
                                       ops::FormSizes* sizes) const override {
      test_.Take(absl::Seconds(2));
      return CopySource::Build(bindings, grow, sizes);
    }

   private:
    FirstCallOfProgramTest& test_;
  };

  FirstCallOfProgramTest() {
    raw_->SetKernel("copy", [this](const auto&) {
      Take(absl::Seconds(16));
      return absl::OkStatus();
    });
    ProgramCache::Options options;
    options.compile = [this](const auto& graph, const auto& target, const auto& compile_options) {
      compile_options.on_kernels(3, 2);
      Take(absl::Seconds(4));
      auto program = kiln::testing::FakeCompile(graph, target, compile_options);
      program->passes = {{.pass = "emit", .seconds = 3, .parts = {{"compile", 1}}}};
      return program;
    };
    options.metrics = &metrics_;
    options.clock = kiln::testing::ClockOf([this] { return Now(); });
    cache_ = std::make_unique<ProgramCache>(std::move(options));
  }
  ~FirstCallOfProgramTest() override {
    EXPECT_TRUE(device_.dispatcher().WaitIdle(absl::InfiniteDuration()));
  }

  void Take(absl::Duration time) { nanoseconds_ += absl::ToInt64Nanoseconds(time); }
  absl::Time Now() {
    Take(absl::Microseconds(1));
    return absl::UnixEpoch() + absl::Nanoseconds(nanoseconds_.load());
  }
  std::shared_ptr<ProgramFuture> Define(const std::string& key,
                                        std::shared_ptr<FirstCall> call = nullptr) {
    auto future = cache_->Get(std::make_shared<SlowSource>(*this, key), {}, device_, "", nullptr,
                              Admission::kAsked, std::move(call));
    absl::Notification done;
    if (future->AddWaiter([&] { done.Notify(); })) done.WaitForNotification();
    return future;
  }
  void RunOnce(const std::shared_ptr<const BoundProgram>& program) {
    auto input = *device_.pool()->Allocate(program->signature.inputs[0], account_);
    input->Resolve(absl::OkStatus());
    absl::Notification ended;
    auto run = Run::Create(
        "s1/1", program, {input}, {account_}, nullptr,
        [&](const absl::Status&, absl::Span<const Run::DeviceTime>) { ended.Notify(); });
    Take(absl::Seconds(8));
    device_.dispatcher().Enqueue(flow_, *run);
    ended.WaitForNotification();
    EXPECT_TRUE(device_.dispatcher().WaitIdle(absl::InfiniteDuration()));
  }

  std::atomic<int64_t> nanoseconds_{0};
  metrics::Metrics metrics_{"test"};
  kiln::testing::FakeDevice* raw_ = new kiln::testing::FakeDevice("cpu:0", 1000);
  ManagedDevice device_{std::unique_ptr<drivers::Device>(raw_), 0, metrics_.ForDevice("cpu:0"),
                        SystemClock()};
  std::shared_ptr<buffers::Account> account_ = std::make_shared<buffers::Account>();
  fairness::FairQueue::FlowId flow_ = device_.dispatcher().AddFlow("flow", 1);
  std::unique_ptr<ProgramCache> cache_;
};

TEST_F(FirstCallOfProgramTest, AccountsForAllOfTheTime) {
  const absl::Time before = Now();
  auto call = std::make_shared<FirstCall>([this] { return Now(); }, "decode");
  Take(absl::Seconds(1));
  const auto future = Define("key", call);
  ASSERT_TRUE(future->result().ok());
  EXPECT_EQ(future->first_call, call);
  EXPECT_EQ(call->progress().part, kWaitForRun);
  EXPECT_EQ(call->progress().kernels, 3);
  EXPECT_EQ(call->progress().kernels_made, 2);
  Take(absl::Seconds(32));
  RunOnce(*future->result());
  ASSERT_TRUE(call->has_ended());
  const absl::Duration whole = Now() - before;

  // Rounded to a second: the rest are reads of the clock.
  std::vector<std::string> seconds;
  absl::Duration sum = absl::ZeroDuration();
  for (const FirstCall::Part& part : call->parts()) {
    sum += part.time;
    seconds.push_back(absl::StrCat(part.name, " ",
                                   absl::ToInt64Seconds(absl::Floor(part.time, absl::Seconds(1)))));
  }
  EXPECT_THAT(seconds,
              ElementsAre("decode 1", "wait_for_thread 0", "build_graph 2", "digest_graph 0",
                          "emit.compile 1", "emit 2", "compile 1", "load 0", "wait_for_run 32",
                          "allocate 0", "wait_for_device 8", "run 16", "answer 0"));
  EXPECT_EQ(sum, call->total());
  // Reads of the clock take microseconds.
  EXPECT_EQ(absl::ToInt64Milliseconds(sum), 63'000);
  EXPECT_EQ(absl::ToInt64Milliseconds(whole), 63'000);
}

TEST_F(FirstCallOfProgramTest, LaterRunsAreNoneOfIt) {
  const auto future = Define("key");
  RunOnce(*future->result());
  const auto& call = (*future->result())->program->first_call();
  ASSERT_TRUE(call->has_ended());
  const absl::Duration total = call->total();
  RunOnce(*future->result());
  EXPECT_EQ(call->total(), total);
}

TEST_F(FirstCallOfProgramTest, ARunBesideTheFirstIsNoneOfIt) {
  const auto future = Define("key");
  const auto& program = *future->result();
  const auto make = [&] {
    auto input = *device_.pool()->Allocate(program->signature.inputs[0], account_);
    return *Run::Create("s1/1", program, {input}, {account_}, nullptr,
                        [](const absl::Status&, absl::Span<const Run::DeviceTime>) {});
  };
  const auto first = make();
  make().reset();
  EXPECT_FALSE(future->first_call->has_ended());
  EXPECT_EQ(future->first_call->progress().part, "wait_for_device");
}

TEST_F(FirstCallOfProgramTest, AProgramForAllValuesIsBound) {
  const auto future =
      cache_->Get(std::make_shared<kiln::testing::VariableCopySource>(1), {{"n", 2}}, device_, "");
  absl::Notification done;
  if (future->AddWaiter([&] { done.Notify(); })) done.WaitForNotification();
  ASSERT_TRUE(future->result().ok());
  const std::vector<FirstCall::Part> parts = future->first_call->parts();
  ASSERT_FALSE(parts.empty());
  EXPECT_EQ(parts.back().name, "bind");
}

// A request for an existing program under another key waits for nothing more.
TEST_F(FirstCallOfProgramTest, EndsWithAProgramThatWasThere) {
  const auto first = Define("key"), second = Define("other key");
  ASSERT_EQ((*first->result())->program, (*second->result())->program);
  EXPECT_FALSE(first->first_call->has_ended());
  EXPECT_TRUE(second->first_call->has_ended());
}

TEST_F(FirstCallOfProgramTest, EndsWithARunThatNeverBegins) {
  const auto future = Define("key");
  const auto& program = *future->result();
  {
    auto input = *device_.pool()->Allocate(program->signature.inputs[0], account_);
    auto run = Run::Create("s1/1", program, {input}, {account_}, nullptr,
                           [](const absl::Status&, absl::Span<const Run::DeviceTime>) {});
    EXPECT_FALSE(future->first_call->has_ended());
  }
  EXPECT_TRUE(future->first_call->has_ended());
}

}  // namespace
}  // namespace kiln::runtime
