#include "server/runtime/program/share_results.h"

#include <cstring>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/run/run.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Kind = compiler::Slot::Kind;

constexpr int64_t kResultBytes = 16;

TensorTypePointer Floats(std::vector<int64_t> shape) {
  return std::make_shared<const buffers::TensorType>(
      buffers::TensorType{ir::DType::kFloat32, ir::Shape(shape.begin(), shape.end())});
}

class ShareResultsTest : public ::testing::Test {
 protected:
  // One input, three outputs, an update; the last two outputs are copies of the first, and so is
  // the update.
  ShareResultsTest() {
    signature_.inputs = {Floats({4})};
    signature_.outputs = {Floats({4}), Floats({4}), Floats({2, 2})};
    signature_.updates = signature_.inputs;
    signature_.updated_inputs = {0};
    program_.kernels.emplace_back();
    program_.kernels[0].image.name = program_.kernels[0].image.code = "copy";
    program_.slots = {{Kind::kInput, 0, kResultBytes},
                      {Kind::kOutput, 0, kResultBytes},
                      {Kind::kOutput, 1, kResultBytes},
                      {Kind::kOutput, 2, kResultBytes},
                      {Kind::kUpdate, 0, kResultBytes}};
    program_.calls = {{0, {{0, 0, kResultBytes}, {1, 0, kResultBytes}}}};
    for (const int slot : {4, 2, 3}) Copy(1, slot);
  }
  void Copy(int from, int to, int64_t bytes = kResultBytes) {
    program_.copies.push_back({{from, 0, bytes}, {to, 0, bytes}});
  }

  Signature signature_;
  compiler::CompiledProgram program_;
};

TEST_F(ShareResultsTest, EqualResultsOfOneTypeAreOne) {
  EXPECT_THAT(ShareResults(signature_, &program_), ElementsAre(0, 0, 2, 0));
  ASSERT_THAT(program_.copies, SizeIs(1)) << "another shape is another value";
  EXPECT_EQ(program_.copies[0].destination.slot, 3);
}

TEST_F(ShareResultsTest, ThoseBeforeAndBehindAreFound) {
  program_.copies.clear();
  Copy(4, 2);
  Copy(2, 1);
  EXPECT_THAT(ShareResults(signature_, &program_), ElementsAre(0, 0, 2, 0));
}

TEST_F(ShareResultsTest, InputsAndPartsAreCopied) {
  program_.copies.clear();
  Copy(0, 2);
  Copy(1, 4, kResultBytes / 2);
  EXPECT_THAT(ShareResults(signature_, &program_), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(program_.copies, SizeIs(2));
}

TEST_F(ShareResultsTest, ARunMakesOneValueOfThem) {
  metrics::Metrics metrics("test");
  ManagedDevice device(std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1 << 20), 0,
                       metrics.ForDevice("cpu:0"), SystemClock());
  const auto account = std::make_shared<buffers::Account>();
  const auto flow = device.dispatcher().AddFlow("flow", 1);
  std::vector<int> same = ShareResults(signature_, &program_);
  auto program =
      *Program::Load({device, std::move(program_)}, {"digest", "", "name", absl::Now(), 0},
                     signature_, std::move(same));
  auto input = *device.pool()->Allocate(signature_.inputs[0], account);
  const float values[4] = {1, 2, 3, 4};
  std::memcpy(input->buffer()->host_pointer(), values, sizeof(values));
  input->Resolve(absl::OkStatus());
  absl::Notification ended;
  auto run =
      *Run::Create("s1/1", Bound(program), {input}, {account}, nullptr,
                   [&](const absl::Status&, absl::Span<const Run::DeviceTime>) { ended.Notify(); });
  const std::vector<ValuePointer> results = run->results();
  device.dispatcher().Enqueue(flow, std::move(run));
  ended.WaitForNotification();
  ASSERT_THAT(results, SizeIs(4));
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[3]);
  EXPECT_NE(results[0], results[2]);
  for (const ValuePointer& result : results) {
    ASSERT_TRUE(result->status().ok());
    EXPECT_EQ(std::memcmp(result->buffer()->host_pointer(), values, sizeof(values)), 0);
  }
  // The input and two results; the fake device adds nothing to their sizes.
  EXPECT_EQ(account->bytes(), 3 * kResultBytes);
  EXPECT_TRUE(device.dispatcher().WaitIdle(absl::InfiniteDuration()));
}

}  // namespace
}  // namespace kiln::runtime
