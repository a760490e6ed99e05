// Runs that write updates over their inputs: when they may, and what a cancel then leaves.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/run/run.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

constexpr int64_t kValueBytes = 64;

class InPlaceTest : public ::testing::Test {
 protected:
  // The references of the caller of Run::Create to an input that nothing else uses.
  static constexpr int kReferences = 1;

  InPlaceTest() : raw_(new kiln::testing::FakeDevice("cpu:0", 1 << 20)) {
    raw_->SetKernel("before", [this](const kiln::testing::FakeArguments&) {
      if (before_) before_();
      return absl::OkStatus();
    });
    raw_->SetKernel("update", [this](const kiln::testing::FakeArguments& arguments) {
      if (within_) within_();
      const auto* from = reinterpret_cast<const float*>(arguments.data[0]);
      auto* to = reinterpret_cast<float*>(arguments.data[1]);
      std::transform(from, from + kValueBytes / 4, to, [](float value) { return value + 1; });
      return absl::OkStatus();
    });
    raw_->StopLists();
    device_ = std::make_unique<ManagedDevice>(std::unique_ptr<drivers::Device>(raw_), 0,
                                              metrics_.ForDevice("cpu:0"), SystemClock());
    flow_ = device_->dispatcher().AddFlow("user", 1);
    program_ = MakeProgram();
  }
  ~InPlaceTest() override { EXPECT_TRUE(device_->dispatcher().WaitIdle(absl::InfiniteDuration())); }

  // A kernel that only reads the input, and one that adds one to it. Then the program commits.
  std::shared_ptr<Program> MakeProgram() {
    compiler::CompiledProgram compiled;
    for (const char* code : {"before", "update"}) {
      compiled.kernels.emplace_back();
      compiled.kernels.back().image.name = compiled.kernels.back().image.code = code;
    }
    using Kind = compiler::Slot::Kind;
    compiled.slots = {{Kind::kInput, 0, kValueBytes}, {Kind::kUpdate, 0, kValueBytes}};
    const compiler::Argument in{0, 0, kValueBytes}, out{1, 0, kValueBytes};
    compiled.calls = {{0, {in}}, {1, {in, out}}};
    compiled.updates_in_place = {0};
    compiled.commit = 1;
    Signature signature;
    signature.inputs = signature.updates = {type_};
    signature.updated_inputs = {0};
    auto program = Program::Load({*device_, std::move(compiled)},
                                 {"digest", "", "count", absl::Now(), 0}, signature);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }
  ValuePointer Input(float first) {
    auto input = *device_->pool()->Allocate(type_, account_);
    auto* data = static_cast<float*>(input->buffer()->host_pointer());
    std::fill(data, data + kValueBytes / 4, first);
    input->Resolve(absl::OkStatus());
    return input;
  }
  static float First(const ValuePointer& value) {
    return *static_cast<const float*>(value->buffer()->host_pointer());
  }

  struct Waited {
    absl::Notification ended;
    absl::Status status;
  };
  std::shared_ptr<runtime::Run> Make(const ValuePointer& input, int references = kReferences) {
    waited_ = std::make_shared<Waited>();
    std::vector<ValuePointer> inputs(1, input);
    auto run = runtime::Run::Create(
        "s1/1", Bound(program_), std::move(inputs), {account_}, nullptr,
        [waited = waited_](const absl::Status& status, absl::Span<const Run::DeviceTime>) {
          waited->status = status;
          waited->ended.Notify();
        },
        references);
    EXPECT_TRUE(run.ok()) << run.status();
    return *run;
  }
  absl::Status Await(const std::shared_ptr<runtime::Run>& run) {
    device_->dispatcher().Enqueue(flow_, run);
    waited_->ended.WaitForNotification();
    return waited_->status;
  }
  // Whether a run of this input, of which the caller has so many references, is written in place.
  bool IsInPlace(const ValuePointer& input, int references) {
    const auto run = Make(input, references);
    const bool shared = run->results()[0]->buffer() == input->buffer();
    EXPECT_TRUE(Await(run).ok());
    return shared;
  }

  metrics::Metrics metrics_{"test"};
  kiln::testing::FakeDevice* raw_;
  std::unique_ptr<ManagedDevice> device_;
  fairness::FairQueue::FlowId flow_ = 0;
  const std::shared_ptr<buffers::Account> account_ = std::make_shared<buffers::Account>();
  const TensorTypePointer type_ = std::make_shared<const buffers::TensorType>(
      buffers::TensorType{ir::DType::kFloat32, {kValueBytes / 4}});
  std::shared_ptr<Program> program_;
  std::shared_ptr<Waited> waited_;
  // Called by the kernels.
  std::function<void()> before_, within_;
};

TEST_F(InPlaceTest, NothingIsAllocatedForAnInputThatNothingElseUses) {
  const ValuePointer input = Input(5);
  const int64_t bytes = raw_->allocated_bytes();
  const auto run = Make(input);
  EXPECT_EQ(raw_->allocated_bytes(), bytes);
  EXPECT_EQ(account_->buffers(), 1);
  const ValuePointer result = run->results()[0];
  ASSERT_TRUE(Await(run).ok());
  EXPECT_EQ(First(result), 6);
}

TEST_F(InPlaceTest, AnInputWithAnotherReferenceKeepsItsValue) {
  const ValuePointer input = Input(5);
  const ValuePointer other = input;
  EXPECT_FALSE(IsInPlace(input, kReferences));
  EXPECT_EQ(First(other), 5);
}

TEST_F(InPlaceTest, TheCallerDecidesWhetherItIsAllowed) {
  const ValuePointer input = Input(5);
  EXPECT_FALSE(IsInPlace(input, 0));
  EXPECT_TRUE(IsInPlace(input, kReferences));
}

TEST_F(InPlaceTest, MemoryOfAnotherAccountIsNotUsed) {
  const auto others = std::make_shared<buffers::Account>();
  ValuePointer input = *device_->pool()->Allocate(type_, others);
  input->Resolve(absl::OkStatus());
  EXPECT_FALSE(IsInPlace(input, kReferences));
}

// A pending value has two references more: the list of its run's results, and the list of that
// run's caller.
TEST_F(InPlaceTest, AResultThatIsPendingIsWrittenOver) {
  raw_->Hold();
  const auto first = Make(Input(5));
  const auto first_waited = waited_;
  const std::vector<ValuePointer> callers = first->results();
  ValuePointer result = callers[0];
  const auto second = Make(result);
  EXPECT_EQ(second->results()[0]->buffer(), result->buffer());
  const ValuePointer kept = result;
  const auto third = Make(result);
  EXPECT_NE(third->results()[0]->buffer(), result->buffer());
  for (const auto& run : {first, third}) device_->dispatcher().Enqueue(flow_, run);
  raw_->LetGo();
  first_waited->ended.WaitForNotification();
  waited_->ended.WaitForNotification();
  EXPECT_EQ(First(kept), 6);
}

TEST_F(InPlaceTest, ACancelBeforeTheCommitLeavesTheOldValue) {
  const ValuePointer input = Input(5);
  const auto run = Make(input);
  before_ = [&] {
    EXPECT_FALSE(run->has_committed());
    EXPECT_TRUE(run->Cancel());
  };
  EXPECT_TRUE(absl::IsCancelled(Await(run)));
  EXPECT_EQ(First(input), 5);
}

TEST_F(InPlaceTest, ACancelAfterItHasNoEffect) {
  const ValuePointer input = Input(5);
  const auto run = Make(input);
  const ValuePointer result = run->results()[0];
  within_ = [&] {
    EXPECT_TRUE(run->has_committed());
    EXPECT_FALSE(run->Cancel());
  };
  EXPECT_TRUE(Await(run).ok());
  EXPECT_EQ(First(result), 6);
}

TEST_F(InPlaceTest, ARunThatReplacesNothingDoesNotCommit) {
  const ValuePointer input = Input(5);
  const auto run = Make(input, 0);
  within_ = [&] {
    EXPECT_FALSE(run->has_committed());
    EXPECT_TRUE(run->Cancel());
  };
  EXPECT_TRUE(absl::IsCancelled(Await(run)));
  EXPECT_EQ(First(input), 5);
}

// A run that takes too long must not hold its device.
TEST_F(InPlaceTest, ItCanBeStoppedAfterTheCommit) {
  const auto run = Make(Input(5));
  const ValuePointer result = run->results()[0];
  within_ = [&] { run->Stop(absl::ResourceExhaustedError("too long")); };
  EXPECT_TRUE(absl::IsResourceExhausted(Await(run)));
  EXPECT_TRUE(absl::IsResourceExhausted(result->status()));
}

TEST_F(InPlaceTest, InputsAreKeptForACheckpoint) {
  const ValuePointer input = Input(5);
  const auto run = Make(input);
  before_ = [&] { EXPECT_TRUE(run->KeepInputs()); };
  EXPECT_FALSE(Await(run).ok());
  EXPECT_EQ(First(input), 5);
}

TEST_F(InPlaceTest, InputsAreNotKeptAfterTheCommit) {
  const auto run = Make(Input(5));
  within_ = [&] { EXPECT_FALSE(run->KeepInputs()); };
  EXPECT_TRUE(Await(run).ok());
}

}  // namespace
}  // namespace kiln::runtime
