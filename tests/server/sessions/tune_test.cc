// Programs are tuned on request: candidates are compiled and run on a processor, and only their
// times are invented.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Responses = std::vector<v1::TuneProgramResponse>;

constexpr double kSlowSeconds = 1e-3;
constexpr double kFastSeconds = 0.5e-3;

// Every schedule but the heuristic's, which is loaded first, is fast.
class InventedTimes : public tuner::TrialRunner {
 public:
  explicit InventedTimes(std::unique_ptr<tuner::TrialRunner> runner) : runner_(std::move(runner)) {}
  absl::StatusOr<std::unique_ptr<tuner::Trial>> Load(const drivers::KernelImage& image) override {
    auto trial = runner_->Load(image);
    if (!trial.ok()) return trial.status();
    if (heuristic_.empty()) heuristic_ = image.code;
    return std::make_unique<InventedTrial>(*std::move(trial),
                                           image.code == heuristic_ ? kSlowSeconds : kFastSeconds);
  }

 private:
  class InventedTrial : public tuner::Trial {
   public:
    InventedTrial(std::unique_ptr<tuner::Trial> trial, double seconds)
        : trial_(std::move(trial)), seconds_(seconds) {}
    absl::StatusOr<double> Time(int times, double) override {
      const auto real = trial_->Time(1, /*seconds_max=*/1e6);
      if (!real.ok()) return real.status();
      return seconds_;
    }
    absl::StatusOr<tuner::Outputs> Run(const tuner::Inputs& inputs, double) override {
      return trial_->Run(inputs, /*seconds_max=*/1e6);
    }

   private:
    const std::unique_ptr<tuner::Trial> trial_;
    const double seconds_;
  };

  const std::unique_ptr<tuner::TrialRunner> runner_;
  std::string heuristic_;
};

class TuneTest : public ::testing::Test {
 protected:
  ~TuneTest() override { LetGo(); }

  explicit TuneTest(std::function<void(config::Config&)> configure = [](config::Config&) {})
      : configure_(std::move(configure)) {}

  TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.configure = configure_;
    options.compile = compiler::Compile;
    options.compile_candidate = compiler::CompileJob;
    options.driver = std::make_unique<drivers::cpu::CpuDriver>(
        drivers::cpu::CpuOptions{.devices = 1, .threads_per_device = 1});
    options.make_trial_runner = [this](const kernel::Kernel& kernel, runtime::ManagedDevice& device)
        -> absl::StatusOr<std::unique_ptr<tuner::TrialRunner>> {
      WaitWhileHeld();
      auto runner = tuner::DeviceTrials::Make(device.device(), kernel, /*seed=*/1);
      if (!runner.ok()) return runner.status();
      return std::make_unique<InventedTimes>(*std::move(runner));
    };
    return options;
  }
  // Tunings wait for LetGo before they search a kernel.
  void Hold() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void LetGo() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    held_ = false;
  }
  void WaitWhileHeld() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++waiting_;
    mutex_.Await(absl::Condition(
        +[](bool* held) { return !*held; }, &held_));
    --waiting_;
  }
  bool IsHeld() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return waiting_ > 0;
  }

  static grpc::Status Tune(Client& client, const std::string& digest,
                           Responses* responses = nullptr, uint32_t width = 1) {
    grpc::ClientContext context;
    v1::TuneProgramRequest request;
    request.set_digest(digest);
    request.set_beam_width(width);
    auto call = client.programs->TuneProgram(&context, request);
    v1::TuneProgramResponse response;
    while (call->Read(&response))
      if (responses != nullptr) responses->push_back(response);
    return call->Finish();
  }
  static v1::Kernel KernelOf(Client& client, const std::string& digest) {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse answer;
    EXPECT_TRUE(client.programs->ExplainProgram(&context, request, &answer).ok());
    EXPECT_EQ(answer.kernels_size(), 1);
    return answer.kernels_size() == 1 ? answer.kernels(0) : v1::Kernel();
  }
  // Runs program 1, x + y, on new tensors under this handle and the next two.
  static std::string Sum(Stream& stream, uint64_t handle) {
    stream.Call(Write(handle, {1, 2, 3, 4}));
    stream.Call(Write(handle + 1, {10, 20, 30, 40}));
    const v1::Result run = stream.Call(RunProgram(1, {handle, handle + 1}, {handle + 2}));
    EXPECT_FALSE(run.has_error()) << run.error().message();
    return stream.Call(Read(handle + 2)).data();
  }

  static v1::ListTuningsResponse List(Client& client) {
    grpc::ClientContext context;
    v1::ListTuningsResponse answer;
    EXPECT_TRUE(client.programs->ListTunings(&context, {}, &answer).ok());
    return answer;
  }
  static grpc::Status StopTuning(Client& client, uint64_t id) {
    grpc::ClientContext context;
    v1::StopTuningRequest request;
    request.set_id(id);
    v1::StopTuningResponse answer;
    return client.programs->StopTuning(&context, request, &answer);
  }
  // Those of kernels, and the choices about programs.
  static int SettingsOf(Client& client) {
    grpc::ClientContext context;
    v1::ExportSettingsResponse exported;
    EXPECT_TRUE(client.admin->ExportSettings(&context, {}, &exported).ok());
    return static_cast<int>(exported.settings());
  }

  const std::function<void(config::Config&)> configure_;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  TestDaemon daemon_{Options()};
  Client client_{daemon_.address()};
  std::unique_ptr<Stream> stream_ = client_.Connect();
};

TEST_F(TuneTest, NewDefinitionsRunWithWhatWasFound) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  ASSERT_NE(digest, "");
  const std::string sum = Sum(*stream_, 1);
  EXPECT_EQ(Floats(sum), (std::vector<float>{11, 22, 33, 44}));
  Responses responses;
  const grpc::Status tuned = Tune(client_, digest.substr(0, 12), &responses);
  ASSERT_TRUE(tuned.ok()) << tuned.error_message();
  ASSERT_FALSE(responses.empty());
  const v1::TuneProgramResponse& last = responses.back();
  EXPECT_EQ(last.state(), v1::TuneProgramResponse::FASTER) << last.why();
  EXPECT_EQ(last.seconds_before(), kSlowSeconds);
  EXPECT_EQ(last.seconds_now(), kFastSeconds);
  EXPECT_EQ(last.share(), 1);
  EXPECT_EQ(last.fraction_done(), 1);
  EXPECT_EQ(last.number(), 1);
  EXPECT_EQ(last.kernels(), 1);
  EXPECT_GT(last.tried(), 1);
  grpc::ClientContext context;
  v1::ExportSettingsResponse exported;
  ASSERT_TRUE(client_.admin->ExportSettings(&context, {}, &exported).ok());
  EXPECT_EQ(exported.settings(), 2);  // the kernel's, and the choices about the program
  EXPECT_THAT(AuditText(daemon_), ContainsRegex("tune_program.*" + digest.substr(0, 12)));
  EXPECT_THAT(daemon_.daemon().MetricsText(),
              HasSubstr("kiln_tune_kernels_total{origin=\"asked\",outcome=\"faster\"} 1"));
  // The session keeps its program, and one that defines the graph now gets another.
  EXPECT_EQ(KernelOf(client_, digest).setting(), "");
  EXPECT_EQ(Sum(*stream_, 4), sum);
  Client next(daemon_.address());
  const auto stream = next.Connect();
  EXPECT_EQ(stream->Call(Define(1, AddGraph(4))).digest(), digest);
  const v1::Kernel kernel = KernelOf(next, digest);
  EXPECT_THAT(kernel.setting(), HasSubstr("stage 0 form="));
  EXPECT_EQ(kernel.setting_refusal(), "");
  EXPECT_EQ(kernel.seconds_heuristic(), kSlowSeconds);
  EXPECT_EQ(kernel.seconds_tuned(), kFastSeconds);
  EXPECT_EQ(Sum(*stream, 1), sum);
  EXPECT_EQ(Sum(*stream_, 7), sum);
  // Nothing is searched twice.
  responses.clear();
  ASSERT_TRUE(Tune(client_, digest, &responses).ok());
  ASSERT_EQ(responses.size(), 1);
  EXPECT_EQ(responses[0].state(), v1::TuneProgramResponse::SEARCHED);
}

TEST_F(TuneTest, AProgramThatNoSessionHasStaysListed) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Client other(daemon_.address());
  stream_.reset();
  v1::CloseSessionRequest close;
  close.set_session_id(client_.session.session_id());
  ASSERT_TRUE(Try(client_.sessions, &v1::SessionService::Stub::CloseSession, close).ok());
  ASSERT_TRUE(Tune(other, digest).ok());
  EXPECT_EQ(KernelOf(other, digest).setting(), "");
  Responses again;
  ASSERT_TRUE(Tune(other, digest, &again).ok());
  EXPECT_EQ(again.back().state(), v1::TuneProgramResponse::SEARCHED);
  // The next definition takes its place.
  const auto stream = other.Connect();
  EXPECT_EQ(stream->Call(Define(1, AddGraph(4))).digest(), digest);
  EXPECT_THAT(KernelOf(other, digest).setting(), HasSubstr("stage 0 form="));
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(other.programs->ListPrograms(&context, {}, &programs).ok());
  EXPECT_EQ(programs.programs_size(), 1);
}

TEST_F(TuneTest, AnotherTuningOfTheDeviceWaitsForItsTurn) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Hold();
  grpc::ClientContext context;
  v1::TuneProgramRequest request;
  request.set_digest(digest);
  const auto first = client_.programs->TuneProgram(&context, request);
  ASSERT_TRUE(Eventually([&] { return IsHeld(); }));
  const grpc::Status second = Tune(client_, digest);
  EXPECT_EQ(second.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Reason(second), "ALREADY_TUNING");
  EXPECT_THAT(second.error_message(),
              HasSubstr("cpu:0 is already tuning the program " + digest.substr(0, 12)));
  EXPECT_THAT(AuditText(daemon_), HasSubstr("ALREADY_TUNING"));
  // The tuning ends without its client.
  context.TryCancel();
  EXPECT_EQ(first->Finish().error_code(), grpc::CANCELLED);
  LetGo();
  EXPECT_TRUE(Eventually([&] { return Tune(client_, digest).ok(); }));
}

TEST_F(TuneTest, OnlyProgramsOfTheCallerAreTuned) {
  const grpc::Status unknown = Tune(client_, "abcdef");
  EXPECT_EQ(unknown.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Reason(unknown), "UNKNOWN_PROGRAM");
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  const grpc::Status wide = Tune(client_, digest, nullptr, /*width=*/65);
  EXPECT_EQ(wide.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(wide), "BAD_TUNING");
  Client bob(daemon_.daemon().listening()[1], {.token = AddUser(client_, "bob")});
  ASSERT_TRUE(bob.opened.ok()) << bob.opened.error_message();
  EXPECT_EQ(Reason(Tune(bob, digest)), "UNKNOWN_PROGRAM");
}

TEST_F(TuneTest, TakesNoLongerThanTheDaemonAllows) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  grpc::ClientContext context;
  v1::TuneProgramRequest request;
  request.set_digest(digest);
  request.set_seconds(3601);
  const grpc::Status refused = client_.programs->TuneProgram(&context, request)->Finish();
  EXPECT_EQ(Reason(refused), "BAD_TUNING");
  EXPECT_THAT(refused.error_message(),
              HasSubstr("3601 s are more than the 3600 s that this daemon allows"));
}

TEST_F(TuneTest, IsListedAndStopped) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Hold();
  grpc::ClientContext context;
  v1::TuneProgramRequest request;
  request.set_digest(digest);
  const auto call = client_.programs->TuneProgram(&context, request);
  ASSERT_TRUE(Eventually([&] { return IsHeld(); }));
  const v1::ListTuningsResponse list = List(client_);
  ASSERT_EQ(list.tunings_size(), 1);
  const v1::Tuning& tuning = list.tunings(0);
  EXPECT_EQ(tuning.program(), digest.substr(0, 12));
  EXPECT_NE(tuning.user(), "");
  ASSERT_EQ(tuning.devices_size(), 1);
  EXPECT_EQ(tuning.devices(0), "cpu:0");
  EXPECT_FALSE(tuning.paused());
  // Other users neither see it nor may end it.
  Client bob(daemon_.daemon().listening()[1], {.token = AddUser(client_, "bob")});
  ASSERT_TRUE(bob.opened.ok()) << bob.opened.error_message();
  EXPECT_EQ(List(bob).tunings_size(), 0);
  EXPECT_EQ(Reason(StopTuning(bob, tuning.id())), "UNKNOWN_TUNING");
  EXPECT_EQ(Reason(StopTuning(client_, tuning.id() + 1)), "UNKNOWN_TUNING");
  EXPECT_TRUE(StopTuning(client_, tuning.id()).ok());
  LetGo();
  const grpc::Status ended = call->Finish();
  EXPECT_EQ(ended.error_code(), grpc::CANCELLED);
  EXPECT_THAT(ended.error_message(), HasSubstr(tuning.user() + " has stopped the tuning"));
  EXPECT_EQ(List(client_).tunings_size(), 0);
  const std::string audit = AuditText(daemon_);
  EXPECT_THAT(audit, ContainsRegex("stop_tuning.*UNKNOWN_TUNING"));
  EXPECT_THAT(audit, ContainsRegex("stop_tuning.*" + digest.substr(0, 12)));
}

class IdleTuneTest : public TuneTest {
 protected:
  IdleTuneTest() : TuneTest([](config::Config& config) { config.idle_tuning = true; }) {}
};

TEST_F(IdleTuneTest, FindsSettingsWhileUsersDoNothing) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  const std::string sum = Sum(*stream_, 1);
  Sum(*stream_, 4);
  // From here on nothing is asked of the daemon but what it has found.
  daemon_.Advance(absl::Minutes(1));
  daemon_.Advance(absl::Minutes(1));
  // The search goes on after it has stored the setting: it counts, and lets new definitions use it.
  ASSERT_TRUE(
      Eventually([&] { return SettingsOf(client_) == 1 && List(client_).tunings_size() == 0; }));
  EXPECT_THAT(daemon_.daemon().MetricsText(),
              HasSubstr("kiln_tune_kernels_total{origin=\"idle\",outcome=\"faster\"} 1"));
  Client next(daemon_.address());
  const auto stream = next.Connect();
  EXPECT_EQ(stream->Call(Define(1, AddGraph(4))).digest(), digest);
  EXPECT_THAT(KernelOf(next, digest).setting(), HasSubstr("stage 0 form="));
  EXPECT_EQ(Sum(*stream, 1), sum);
}

TEST_F(IdleTuneTest, MakesRoomForWhatAUserAsks) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Sum(*stream_, 1);
  Sum(*stream_, 4);
  Hold();
  daemon_.Advance(absl::Minutes(1));
  daemon_.Advance(absl::Minutes(1));
  ASSERT_TRUE(Eventually([&] { return IsHeld(); }));
  const v1::ListTuningsResponse list = List(client_);
  ASSERT_EQ(list.tunings_size(), 1);
  EXPECT_EQ(list.tunings(0).user(), "");
  LetGo();
  EXPECT_TRUE(Tune(client_, digest, nullptr, /*width=*/8).ok());
  EXPECT_EQ(SettingsOf(client_), 2);
}

TEST_F(IdleTuneTest, EndsWithTheDaemon) {
  stream_->Call(Define(1, AddGraph(4)));
  Sum(*stream_, 1);
  Sum(*stream_, 4);
  Hold();
  daemon_.Advance(absl::Minutes(1));
  daemon_.Advance(absl::Minutes(1));
  ASSERT_TRUE(Eventually([&] { return IsHeld(); }));
  stream_.reset();
  EXPECT_TRUE(daemon_.daemon().Stop(absl::Hours(1), Daemon::Sessions::kEnd));
}

class SeparateTuneTest : public TuneTest {
 protected:
  SeparateTuneTest() : TuneTest([](config::Config& config) { config.programs_shared = false; }) {}
};

TEST_F(SeparateTuneTest, UsersHaveTheirOwnSettings) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Responses responses;
  ASSERT_TRUE(Tune(client_, digest, &responses).ok());
  EXPECT_EQ(responses.back().state(), v1::TuneProgramResponse::FASTER);
  Client again(daemon_.address());
  const auto stream = again.Connect();
  stream->Call(Define(1, AddGraph(4)));
  EXPECT_THAT(KernelOf(again, digest).setting(), HasSubstr("stage 0 form="));
  EXPECT_EQ(KernelOf(again, digest).seconds_tuned(), kFastSeconds);
  // Nothing shows another user that this kernel was tuned.
  Client bob(daemon_.daemon().listening()[1], {.token = AddUser(client_, "bob")});
  ASSERT_TRUE(bob.opened.ok()) << bob.opened.error_message();
  const auto bobs = bob.Connect();
  const std::string bobs_digest = bobs->Call(Define(1, AddGraph(4))).digest();
  EXPECT_EQ(KernelOf(bob, bobs_digest).setting(), "");
  responses.clear();
  ASSERT_TRUE(Tune(bob, bobs_digest, &responses).ok());
  EXPECT_EQ(responses.back().state(), v1::TuneProgramResponse::FASTER);
  EXPECT_EQ(SettingsOf(client_), 4);
}

TEST_F(TuneTest, ADaemonThatStopsEndsIt) {
  const std::string digest = stream_->Call(Define(1, AddGraph(4))).digest();
  Hold();
  grpc::ClientContext context;
  v1::TuneProgramRequest request;
  request.set_digest(digest);
  const auto call = client_.programs->TuneProgram(&context, request);
  ASSERT_TRUE(Eventually([&] { return IsHeld(); }));
  stream_.reset();
  std::thread stop([this] { daemon_.daemon().Stop(absl::Hours(1), Daemon::Sessions::kEnd); });
  EXPECT_TRUE(Eventually([this] {
    return !Try(client_.sessions, &v1::SessionService::Stub::OpenSession, v1::OpenSessionRequest())
                .ok();
  }));
  LetGo();
  EXPECT_EQ(Reason(call->Finish()), "TUNING_STOPPED");
  stop.join();
}

}  // namespace
}  // namespace kiln::testing
