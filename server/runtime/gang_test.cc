// Programs on several devices at once: right results, one order on all devices, and no device that
// waits for one that has failed.
#include "server/runtime/gang.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/graph/text.h"
#include "drivers/cpu/driver.h"
#include "drivers/null/driver.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fairness/gang_order.h"
#include "server/runtime/explain.h"
#include "server/runtime/gang_run.h"
#include "server/runtime/program_compiler.h"

namespace kiln::runtime {
namespace {

using ::testing::HasSubstr;

// The mean over all rows, which lie in parts on the devices, and the rows minus it: an all-reduce.
// An update doubles the rows.
std::string MeanGraph(int devices, int64_t rows) {
  return absl::StrCat("mesh data=", devices, "\ninput 0 float32[", rows, ",8] spec=[1,0,0]\n",
                      "%0 = input float32[", rows, ",8] index=0\n",
                      "%1 = reduce_sum float32[1,8] %0 axes=[0]\n", "%2 = expand float32[", rows,
                      ",8] %1\n", "%3 = add float32[", rows, ",8] %0 %2\n", "%4 = add float32[",
                      rows, ",8] %0 %0\n", "output %3 spec=[1,0,0]\noutput %1\nupdate 0 %4\n");
}

class TextSource : public GraphSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  const std::string& key() const override { return text_; }
  const std::vector<Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const Bindings&, const Grow&) const override {
    return graph::Parse(text_);
  }

 private:
  const std::string text_;
  const std::vector<Variable> none_;
};

class GangTest : public ::testing::Test {
 protected:
  ~GangTest() override {
    for (auto& device : devices_) {
      EXPECT_TRUE(device->WaitIdle(absl::Seconds(60))) << device->name();
    }
  }

  void UseDriver(drivers::Driver& driver) {
    std::string why_none;
    auto devices = driver.Enumerate(&why_none);
    ASSERT_TRUE(devices.ok()) << devices.status();
    for (auto& device : *devices) {
      const std::string name = device->info().name;
      devices_.push_back(std::make_unique<ManagedDevice>(std::move(device), 0,
                                                         metrics_.ForDevice(name), absl::Now));
      accounts_.push_back(std::make_shared<buffers::Account>());
      flows_.emplace_back();
      for (int user = 0; user < 6; ++user)
        flows_.back().push_back(
            devices_.back()->dispatcher().AddFlow(absl::StrCat("user", user), 1));
    }
  }
  // `cores`: that they believe to share.
  void UseCpus(int devices, int cores = 64) {
    drivers::cpu::CpuDriver driver(
        {.devices = devices, .threads_per_device = 1, .cores = [cores] { return cores; }});
    UseDriver(driver);
  }
  void UseNulls(int devices, std::function<absl::Status()> fault) {
    drivers::null::NullDriver driver({.devices = devices, .fault = std::move(fault)});
    UseDriver(driver);
  }

  std::shared_ptr<const BoundProgram> Compile(const std::string& text, std::vector<int> places) {
    ProgramCompiler::Options options;
    options.compile = compiler::Compile;
    options.metrics = &metrics_;
    options.now = absl::Now;
    ProgramCompiler compiler(options);
    ProgramRequest request{
        std::make_shared<TextSource>(text), {}, devices_[places[0]].get(), "name", Payer(nullptr)};
    for (const int place : places) request.members.push_back(devices_[place].get());
    auto graph = request.Build();
    EXPECT_TRUE(graph.ok()) << graph.status();
    auto program = compiler.Compile(request, *graph, "digest");
    compiled_ = program.status();
    return program.ok() ? Bound(*program) : nullptr;
  }

  // The parts of a tensor whose element i is `first` + i.
  ValuePointer Input(const BoundProgram& bound, float first) {
    const auto& type = bound.signature.inputs[0];
    const auto& placement = bound.signature.input_placements[0];
    std::vector<float> whole(type->bytes() / 4);
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = first + static_cast<float>(i);
    std::vector<ValuePointer> parts;
    const std::vector<Gang::Member>& members = bound.program->gang()->members();
    for (size_t i = 0; i < members.size(); ++i) {
      const buffers::Part part = buffers::PartOf(*placement, type->shape, static_cast<int64_t>(i));
      const auto part_type =
          std::make_shared<const buffers::TensorType>(buffers::TensorType{type->dtype, part.shape});
      auto value = members[i].device->pool()->Allocate(part_type, nullptr);
      std::string bytes(part_type->bytes(), 0);
      buffers::ForEachRun(type->shape, 4, part, [&](int64_t from, int64_t to, int64_t size) {
        std::memcpy(bytes.data() + to, reinterpret_cast<const char*>(whole.data()) + from, size);
      });
      EXPECT_TRUE(members[i].device->device().CopyToDevice(*(*value)->buffer(), 0, bytes).ok());
      parts.push_back(*std::move(value));
    }
    auto value = buffers::Value::Sharded(type, placement, std::move(parts));
    value->Resolve(absl::OkStatus());
    return value;
  }
  static std::vector<float> Whole(const buffers::Value& value) {
    std::vector<float> whole(value.bytes() / 4);
    for (size_t i = 0; i < value.parts().size(); ++i) {
      const buffers::Part part =
          buffers::PartOf(*value.placement(), value.type()->shape, static_cast<int64_t>(i));
      const buffers::Value& own = *value.parts()[i];
      std::string bytes(own.bytes(), 0);
      EXPECT_TRUE(own.pool()->device().CopyToHost(*own.buffer(), 0, absl::MakeSpan(bytes)).ok());
      buffers::ForEachRun(
          value.type()->shape, 4, part, [&](int64_t to, int64_t from, int64_t size) {
            std::memcpy(reinterpret_cast<char*>(whole.data()) + to, bytes.data() + from, size);
          });
    }
    return whole;
  }

  struct Started {
    std::shared_ptr<GangRun> run;
    std::vector<ValuePointer> results;
    std::shared_ptr<absl::Notification> ended = std::make_shared<absl::Notification>();
    std::shared_ptr<absl::Status> status = std::make_shared<absl::Status>();
  };
  // `user`: whose flows it is queued in.
  Started Start(std::shared_ptr<const BoundProgram> bound, ValuePointer input, int user = 0) {
    Started started;
    const std::vector<Gang::Member> members = bound->program->gang()->members();
    const std::vector<std::shared_ptr<buffers::Account>> accounts(members.size(), accounts_[0]);
    auto run = GangRun::Create("run", std::move(bound), {std::move(input)}, accounts, &order_,
                               [status = started.status, ended = started.ended](
                                   const absl::Status& result, absl::Span<const double> seconds) {
                                 *status = result;
                                 ended->Notify();
                               });
    if (!run.ok()) {
      *started.status = run.status();
      started.ended->Notify();
      return started;
    }
    started.run = *run;
    started.results = (*run)->results();
    const auto work = (*run)->MakeWork();
    for (size_t i = 0; i < members.size(); ++i)
      members[i].device->dispatcher().Enqueue(FlowOf(*members[i].device, user), work[i]);
    return started;
  }
  fairness::FairQueue::FlowId FlowOf(const ManagedDevice& device, int user) {
    for (size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].get() == &device) return flows_[i][user];
    return 0;
  }
  static absl::Status Await(const Started& started) {
    if (!started.ended->WaitForNotificationWithTimeout(absl::Seconds(60)))
      return absl::DeadlineExceededError("the run did not end");
    return *started.status;
  }

  // Of 8 rows from Input(…, 0) times `scale`: column c has c, 8 + c, …, 56 + c.
  static void ExpectSums(const Started& started, float scale) {
    const std::vector<float> sums = Whole(*started.results[1]);
    const std::vector<float> results = Whole(*started.results[0]);
    for (int c = 0; c < 8; ++c) {
      EXPECT_EQ(sums[c], scale * static_cast<float>(224 + 8 * c));
      for (int r = 0; r < 8; ++r)
        EXPECT_EQ(results[8 * r + c], scale * static_cast<float>(8 * r + c) + sums[c]);
    }
  }

  metrics::Metrics metrics_{"test"};
  fairness::GangOrder order_;
  std::vector<std::unique_ptr<ManagedDevice>> devices_;
  std::vector<std::shared_ptr<buffers::Account>> accounts_;
  // By device and user. A flow's runs come from one thread, as a session's do.
  std::vector<std::vector<fairness::FairQueue::FlowId>> flows_;
  absl::Status compiled_;
};

// As many cores as devices, and fewer.
class GangOnCoresTest : public GangTest, public ::testing::WithParamInterface<int> {};

TEST_P(GangOnCoresTest, DevicesAddUpWhatEachHas) {
  UseCpus(4, GetParam());
  const auto bound = Compile(MeanGraph(4, 8), {0, 1, 2, 3});
  ASSERT_NE(bound, nullptr) << compiled_;
  EXPECT_THAT(QueueText(bound->program->compiled()), HasSubstr("exchange along mesh axes 0"));
  EXPECT_GT(bound->program->gang()->exchanged_bytes(), 0);
  ValuePointer rows = Input(*bound, 0);
  // Run after run, each with what the one before made, queued all at once.
  std::vector<Started> runs;
  for (int i = 0; i < 50; ++i) {
    runs.push_back(Start(bound, i % 10 == 0 ? rows : runs.back().results[2]));
  }
  float scale = 1;
  for (int i = 0; i < 50; ++i) {
    if (i % 10 == 0) scale = 1;
    ASSERT_TRUE(Await(runs[i]).ok()) << i << *runs[i].status;
    ExpectSums(runs[i], scale);
    scale *= 2;
  }
  EXPECT_EQ(bound->program->runs(), 50);
  for (const auto& device : devices_) EXPECT_GT(device->dispatcher().device_seconds(), 0);
}

// A processor and an OpenCL device, which do not reach each other's memory and have other kernels.
TEST_F(GangTest, DevicesThatDoNotReachEachOtherCopyThroughTheHost) {
  UseCpus(2, 1);
  drivers::opencl::OpenClDriver opencl({.sharing_host_memory = true});
  UseDriver(opencl);
  if (devices_.size() < 3) GTEST_SKIP() << "no OpenCL device";
  for (const std::vector<int>& places : std::vector<std::vector<int>>{{0, 2}, {2, 0}}) {
    const auto bound = Compile(MeanGraph(2, 8), places);
    ASSERT_NE(bound, nullptr) << compiled_;
    EXPECT_GT((*bound->program->gang()->OnDevices())->staging_bytes, 0);
    const ValuePointer rows = Input(*bound, 0);
    Started before;
    for (int i = 0; i < 10; ++i) {
      const Started run = Start(bound, i == 0 ? rows : before.results[2]);
      ASSERT_TRUE(Await(run).ok()) << *run.status;
      ExpectSums(run, static_cast<float>(1 << i));
      before = run;
    }
  }
}

TEST_F(GangTest, AsManyDevicesAsTheMeshHasPlaces) {
  UseCpus(3);
  EXPECT_EQ(Compile(MeanGraph(4, 8), {0, 1, 2}), nullptr);
  EXPECT_EQ(compiled_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(compiled_.message(), HasSubstr("4 places, but 3 devices"));
}

TEST_F(GangTest, InputsThatLieOtherwiseAreRefused) {
  UseCpus(2);
  const auto there = Compile(MeanGraph(2, 4), {0, 1});
  const auto turned = Compile(MeanGraph(2, 4), {1, 0});
  ASSERT_NE(turned, nullptr) << compiled_;
  const ValuePointer rows = Input(*there, 0);
  EXPECT_TRUE(CheckInputs(there->signature, {rows}).ok());
  const absl::Status refused = CheckInputs(turned->signature, {rows});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("input 0 lies [data, _] on cpu:0, cpu:1"));
  EXPECT_THAT(refused.message(), HasSubstr("wants it [data, _] on cpu:1, cpu:0"));
}

// Gangs on overlapping devices, in other orders, from several threads: with another order on each
// device two of them would wait for each other.
TEST_P(GangOnCoresTest, GangsThatShareDevicesAllEnd) {
  UseCpus(4, GetParam());
  const std::vector<std::vector<int>> sets = {{0, 1}, {1, 0}, {2, 1}, {3, 0}, {2, 3}, {1, 3}};
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  int users = 0;
  for (const auto& places : sets) {
    const auto bound = Compile(MeanGraph(2, 4), places);
    ASSERT_NE(bound, nullptr) << compiled_;
    threads.emplace_back([this, bound, &ended, user = users++] {
      std::vector<Started> runs;
      for (int i = 0; i < 200; ++i) runs.push_back(Start(bound, Input(*bound, 1), user));
      for (const Started& run : runs)
        if (Await(run).ok()) ++ended;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 1200);
}

INSTANTIATE_TEST_SUITE_P(Cores, GangOnCoresTest, ::testing::Values(1, 2, 4));

TEST_F(GangTest, ACancelledRunEndsAndTheNextOneRuns) {
  UseCpus(2, 1);
  const auto bound = Compile(MeanGraph(2, 4), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  // In the queue of one device alone: it is parked there, and holds nothing.
  auto run = GangRun::Create("run", bound, {Input(*bound, 0)}, {accounts_[0], accounts_[1]},
                             &order_, [](const absl::Status&, absl::Span<const double>) {});
  ASSERT_TRUE(run.ok()) << run.status();
  const auto work = (*run)->MakeWork();
  devices_[0]->dispatcher().Enqueue(flows_[0][0], work[0]);
  const auto other = devices_[0]->dispatcher().AddFlow("bob", 1);
  EXPECT_TRUE(devices_[0]->WaitIdle(absl::Seconds(10)));
  EXPECT_TRUE((*run)->Cancel());
  EXPECT_FALSE((*run)->Cancel());
  const auto results = (*run)->results();
  devices_[1]->dispatcher().Enqueue(flows_[1][0], work[1]);
  EXPECT_EQ(results[0]->status().code(), absl::StatusCode::kCancelled);
  const Started next = Start(bound, Input(*bound, 0));
  EXPECT_TRUE(Await(next).ok()) << *next.status;
  devices_[0]->dispatcher().RemoveFlow(other);
}

TEST_F(GangTest, ALostDeviceFailsItsGangsAlone) {
  // All null devices share one fault; the second half belongs to another driver.
  const auto broken = std::make_shared<std::atomic<bool>>(false);  // devices ask until they go
  UseNulls(2, [broken] { return *broken ? absl::InternalError("unplugged") : absl::OkStatus(); });
  UseNulls(2, [] { return absl::OkStatus(); });
  const auto lost = Compile(MeanGraph(2, 4), {0, 2});
  const auto well = Compile(MeanGraph(2, 4), {2, 3});
  ASSERT_TRUE(lost && well) << compiled_;
  ASSERT_TRUE(Await(Start(lost, Input(*lost, 0))).ok());
  const ValuePointer input = Input(*lost, 0);
  std::vector<Started> runs;
  for (int i = 0; i < 100; ++i) {
    if (i == 50) *broken = true;
    runs.push_back(Start(lost, input));
    runs.push_back(Start(well, Input(*well, 0)));
  }
  int failed = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const absl::Status status = Await(runs[i]);
    if (i % 2 == 1) {
      EXPECT_TRUE(status.ok()) << status;
    } else if (!status.ok()) {
      ++failed;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(status.message(), HasSubstr("device null:0 has failed: ")) << status;
    }
  }
  EXPECT_GE(failed, 50);
  EXPECT_EQ(devices_[2]->health(), Health::kHealthy);
}

}  // namespace
}  // namespace kiln::runtime
