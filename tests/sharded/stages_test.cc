// Training steps in stages: which device has what, what is sent when, that devices work at the same
// time, and that the results equal those on one device.
#include "compiler/graph/stages.h"

#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/text.h"
#include "compiler/ir/str_cat.h"
#include "compiler/shard/send_order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/model_builder.h"
#include "tests/sharded/faults.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using golden::ModelBuilder;
using Node = ModelBuilder::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kPartRows = 4;  // of a part of the batch
constexpr int64_t kFeatures = 6;

// A layer on each of `stages` devices, a batch in `parts` that follow one another, SGD. The loss
// and the targets are on the last device, x is on the first.
class Pipeline {
 public:
  Pipeline(int stages, int parts) : stages_(stages), parts_(parts) {}

  graph::Graph Make() {
    const Node x = Input({parts_ * kPartRows, kFeatures}, 0);
    const Node y = Input({parts_ * kPartRows, kFeatures}, stages_ - 1);
    std::vector<Node> weights;
    for (int i = 0; i < stages_; ++i) weights.push_back(Input({kFeatures, kFeatures}, i));
    Node loss = nullptr;
    for (int part = 0; part < parts_; ++part) {
      const Node error = model_.Op("sub", {Forward(PartOf(x, part), weights), PartOf(y, part)});
      const Node of_part = model_.Op("mean", {model_.Op("mul", {error, error})});
      loss = loss == nullptr ? of_part : model_.Op("add", {loss, of_part});
    }
    for (const Node weight : weights) {
      const Node step = model_.ops.Mul(model_.Gradient(loss, weight), 0.1);
      model_.Update(weight, model_.ops.Sub(weight, step));
    }
    model_.Output(loss);
    auto sharding = std::make_shared<graph::Sharding>();
    sharding->mesh.axes = {{"stage", stages_}};
    sharding->inputs.resize(devices_.size(), graph::Spec(2));
    sharding->outputs.emplace_back(0);
    sharding->stages = graph::Stages{devices_, {stages_ - 1}};
    return model_.Finish(std::move(sharding));
  }

 private:
  Node Input(ir::Shape shape, int device) {
    devices_.push_back(device);
    return model_.Input(std::move(shape));
  }

  Node PartOf(Node x, int part) {
    return model_.ops.Slice(x, 0, part * kPartRows, (part + 1) * kPartRows);
  }

  Node Forward(Node x, const std::vector<Node>& weights) {
    for (int i = 0; i < stages_; ++i) {
      if (i > 0) x = model_.ops.Send(x, i - 1, i);
      x = model_.Op("relu", {model_.Op("matmul", {x, weights[i]})});
    }
    return x;
  }

  const int stages_;
  const int parts_;
  ModelBuilder model_;
  std::vector<int> devices_;
};

// Returns for each slot the devices that compute something in it.
std::vector<std::string> Work(const shard::Program& program, int devices) {
  std::vector<std::string> slots;
  for (size_t i = 0; i < program.segments.size(); ++i) {
    if (i % devices == 0) slots.emplace_back();
    if (!program.segments[i].graph.outputs.empty()) StrAppend(&slots.back(), i % devices);
  }
  return slots;
}

TEST(Stages, TrainAsOnOneDevice) {
  for (const int stages : {2, 3, 4}) {
    for (const int parts : {1, 2, 5}) {
      const graph::Graph graph = Pipeline(stages, parts).Make();
      EXPECT_EQ(SimulatedDisagreement(graph, InputValues(graph), {1e-4}, parts), "");
      EXPECT_EQ(CompiledDisagreement(graph, InputValues(graph), {1e-4}, stages), "");
    }
  }
}

// Each part goes to the second device and its gradient comes back, while the first device computes
// the next part.
TEST(Stages, WorkAtOnce) {
  const auto program = MakeProgram(Pipeline(2, 4).Make());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Work(*program, 2), ElementsAre("0", "01", "01", "01", "01", "0"));
  const auto one = MakeProgram(Pipeline(2, 1).Make());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(Work(*one, 2), ElementsAre("0", "1", "0"));
}

TEST(Stages, SendWhatTheNextOneNeedsAndNothingElse) {
  const auto program = MakeProgram(Pipeline(3, 1).Make());
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> transfers;
  for (const shard::Transfer& transfer : program->transfers) {
    transfers.push_back(StrCat(transfer.name, " ", transfer.what, ": ", transfer.bytes));
  }
  EXPECT_THAT(transfers,
              ElementsAre("send 0 to 1 float32[4,6]: 96", "send 1 to 2 float32[4,6]: 96",
                          "send 2 to 1 float32[4,6]: 96", "send 1 to 0 float32[4,6]: 96"));
}

TEST(Stages, ADeviceHasItsOwnAlone) {
  const graph::Graph graph = Pipeline(2, 2).Make();
  for (int stage = 0; stage < 2; ++stage) {
    const auto program = CompileStage(graph, stage);
    ASSERT_TRUE(program.ok()) << program.status();
    constexpr int64_t kBatch = 2 * kPartRows * kFeatures * 4;
    constexpr int64_t kWeight = kFeatures * kFeatures * 4;
    std::vector<int64_t> bytes;
    for (int i = 0; i < 4; ++i) bytes.push_back(program->slots[i].bytes);
    const std::vector<int64_t> first = {kBatch, 0, kWeight, 0};
    const std::vector<int64_t> second = {0, kBatch, 0, kWeight};
    EXPECT_EQ(bytes, stage == 0 ? first : second);
  }
}

TEST(Stages, WhatIsPlannedWrongIsNoticed) {
  const graph::Graph graph = Pipeline(3, 3).Make();
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(IsNoticed(graph, *program));
  for (size_t i = 0; i + 1 < program->meetings.size(); ++i) {
    shard::Program faulty = *program;
    faulty.meetings.erase(faulty.meetings.begin() + static_cast<int64_t>(i));
    EXPECT_TRUE(IsNoticed(graph, faulty)) << "without meeting " << i;
  }
  // All private buffers of a device at the same offset.
  shard::Program faulty = *program;
  for (shard::Buffer& buffer : faulty.buffers) {
    if (buffer.kind == shard::Buffer::Kind::kOwn) buffer.offset = 0;
  }
  EXPECT_TRUE(IsNoticed(graph, faulty));
  EXPECT_FALSE(shard::Verify(faulty).ok());
  EXPECT_TRUE(shard::Verify(*program).ok());
}

// Odd sizes, empty tensors, one value sent twice, results that were sent or that are inputs.
TEST(Stages, TakeWhateverIsSent) {
  const auto graph = graph::Parse(R"(mesh stage=3
input 0 bool[3] at 0
input 1 float16[5] at 1
input 2 float32[0] at 0
%0 = input bool[3] index=0
%1 = input float16[5] index=1
%2 = input float32[0] index=2
%3 = send bool[3] %0 source=0 target=1
%4 = send bool[3] %0 source=0 target=2
%5 = not bool[3] %3
%6 = send bool[3] %5 source=1 target=0
%7 = or bool[3] %6 %0
%8 = send float32[0] %2 source=0 target=2
%9 = send float16[5] %1 source=1 target=1
%10 = const float16 value=2
%11 = reshape float16[1] %10
%12 = expand float16[5] %11
%13 = send float16[5] %12 source=0 target=1
%14 = mul float16[5] %9 %13
output %4 at 2
output %4 at 2
output %7 at 0
output %8 at 2
output %14 at 1
output %9 at 1
output %12 at 2
update 0 %7
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ops::HostTensor bits = ops::HostTensor::Zeros(ir::DType::kBool, {3});
  bits.bytes = {1, 0, 1};
  ops::HostTensor halves = ops::HostTensor::Zeros(ir::DType::kFloat16, {5});
  for (size_t i = 0; i < halves.bytes.size(); i += 2) halves.bytes[i + 1] = 0x3C;  // 1
  const std::vector<ops::HostTensor> inputs = {bits, halves,
                                               ops::HostTensor::Zeros(ir::DType::kFloat32, {0})};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(SimulatedDisagreement(*graph, inputs, {0}, seed), "");
    EXPECT_EQ(CompiledDisagreement(*graph, inputs, {0}, seed), "");
  }
}

TEST(Stages, SendsHaveABound) {
  constexpr int kSends = 4097;
  std::string text = "mesh stage=2\ninput 0 float32[4] at 0\n%0 = input float32[4] index=0\n";
  for (int i = 0; i < kSends; ++i) {
    StrAppend(&text, "%", i + 1, " = send float32[4] %", i, " source=", i % 2,
              " target=", (i + 1) % 2, "\n");
  }
  StrAppend(&text, "output %", kSends, " at ", kSends % 2, "\noutput %", kSends - 1, " at ",
            (kSends + 1) % 2, "\n");
  auto graph = graph::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(MakeProgram(*graph).status().message(), HasSubstr("4097 values between devices"));
  // One value less in each direction, one after another.
  graph->outputs.erase(graph->outputs.begin());
  auto fewer = std::make_shared<graph::Sharding>(*graph->sharding);
  fewer->outputs.pop_back();
  fewer->stages->outputs.erase(fewer->stages->outputs.begin());
  graph->sharding = std::move(fewer);
  EXPECT_EQ(SimulatedDisagreement(*graph, InputValues(*graph), {0}, 1), "");
}

std::string WhyNot(const std::string& text) {
  return std::string(graph::Parse(text).status().message());
}

TEST(Stages, WhatIsOnTwoDevicesIsRefused) {
  const std::string inputs =
      "mesh stage=2\ninput 0 float32[4] at 0\ninput 1 float32[4] at 1\n"
      "%0 = input float32[4] index=0\n%1 = input float32[4] index=1\n";
  EXPECT_THAT(WhyNot(inputs + "%2 = add float32[4] %0 %1\noutput %2 at 0\n"),
              HasSubstr("has operands on the devices 0 and 1; send one of them"));
  EXPECT_THAT(WhyNot(inputs + "%2 = send float32[4] %0 source=1 target=0\noutput %2 at 0\n"),
              HasSubstr("sends from device 1 a value that is on device 0"));
  EXPECT_THAT(WhyNot(inputs + "%2 = send float32[4] %0 source=0 target=2\noutput %2 at 0\n"),
              HasSubstr("names device 2 of 2"));
  EXPECT_THAT(WhyNot(inputs + "output %0 at 1\n"),
              HasSubstr("output 0 is computed on device 0 but must be on device 1"));
  EXPECT_THAT(WhyNot(inputs + "output %0 at 0\nupdate 0 %1\n"),
              HasSubstr("the update of input 0 is computed on device 1"));
  EXPECT_THAT(WhyNot(inputs + "output %0\n"), HasSubstr("must name a device for each"));
  EXPECT_THAT(WhyNot("mesh stage=2\ninput 0 float32[4] at 2\n"),
              HasSubstr("on 2 devices must not name device 2"));
  EXPECT_THAT(WhyNot("mesh a=2 b=2\ninput 0 float32[4] at 1\n"), HasSubstr("a mesh of one axis"));
}

// dy/dx of an x that depends on no input is on the device that computes it, which is known only
// after autodiff.
TEST(Stages, AGradientOfAConstantThatMeetsAnotherDeviceIsRefused) {
  const auto graph = graph::Parse(
      "mesh stage=2\ninput 0 float32 at 0\ninput 1 float32 at 1\n%0 = input float32 index=0\n"
      "%1 = input float32 index=1\n%2 = const float32 value=3\n%3 = mul float32 %1 %2\n"
      "%4 = gradient float32 %3 %2\n%5 = add float32 %4 %0\noutput %5 at 0\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status status = MakeProgram(*graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr("has operands on the devices 1 and 0"));
}

// Every tenth value of a long chain is sent: nodes that were visited for one send are not visited
// for the next.
TEST(Stages, ManySendsOfALongChain) {
  constexpr int kNodes = 12'000;
  std::string text = "mesh stage=2\ninput 0 float32[1] at 0\n%0 = input float32[1] index=0\n";
  std::string sum;
  int number = 0;
  int last_sum = -1;
  int chain = 0;
  while (number < kNodes) {
    for (int i = 0; i < 8; ++i) {
      StrAppend(&text, "%", number + 1,
                i == 4 ? " = reduce_sum float32[1] %" : " = sin float32[1] %", chain,
                i == 4 ? " axes=[0]\n" : "\n");
      chain = ++number;
    }
    StrAppend(&text, "%", number + 1, " = send float32[1] %", chain, " source=0 target=1\n");
    const int sent = ++number;
    if (last_sum >= 0) {
      StrAppend(&text, "%", number + 1, " = add float32[1] %", last_sum, " %", sent, "\n");
      ++number;
    }
    last_sum = number;
  }
  StrAppend(&text, "output %", last_sum, " at 1\n");
  const auto graph = graph::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto homes = graph::FindHomes(*graph);
  ASSERT_TRUE(homes.ok()) << homes.status();
  const shard::SendOrder order = shard::OrderSends(*graph, *homes);
  EXPECT_GT(order.slots, 1'000);
}

}  // namespace
}  // namespace kiln::sharded
