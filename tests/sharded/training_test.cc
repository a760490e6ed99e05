// Training steps on meshes: what they send and store, and that the results equal those on one
// device.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/graphs.h"
#include "tests/golden/model_builder.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/machine_codes/some_gpu.h"
#include "tests/sharded/faults.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using golden::ModelBuilder;
using graph::Mesh;
using graph::Spec;
using Node = ModelBuilder::Node;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int64_t kBatch = 16;
constexpr int64_t kWidth = 8;
constexpr int64_t kHidden = 12;

// Inputs of MlpStep, by index: x, targets, w1, w2, then first and second moments of w1 and w2.
enum Input { kX, kY, kW1, kW2, kM1, kV1, kM2, kV2, kNumInputs };

// relu(x w1) w2, the gradients of the mean square, Adam. The output is the loss.
graph::Graph MlpStep() {
  ModelBuilder model;
  const Node x = model.Input({kBatch, kWidth});
  const Node y = model.Input({kBatch, kWidth});
  const Node w1 = model.Input({kWidth, kHidden});
  const Node w2 = model.Input({kHidden, kWidth});
  const Node hidden = model.Op("relu", {model.Op("matmul", {x, w1})});
  const Node error = model.Op("sub", {model.Op("matmul", {hidden, w2}), y});
  const Node loss = model.Op("mean", {model.Op("mul", {error, error})});
  const Node g1 = model.Gradient(loss, w1);
  const Node g2 = model.Gradient(loss, w2);
  ops::Builder& b = model.ops;
  for (const auto& [w, g] : {std::pair(w1, g1), std::pair(w2, g2)}) {
    const Node m = model.Input(w->shape());
    const Node v = model.Input(w->shape());
    const Node new_m = b.Add(b.Mul(m, 0.9), b.Mul(g, 0.1));
    const Node new_v = b.Add(b.Mul(v, 0.99), b.Mul(b.Mul(g, g), 0.01));
    model.Update(m, new_m);
    model.Update(v, new_v);
    model.Update(w, b.Sub(w, b.Mul(b.Div(new_m, b.Add(b.Sqrt(new_v), 1e-3)), 0.01)));
  }
  model.Output(loss);
  return model.Finish();
}

graph::Graph Placed(graph::Graph graph, Mesh mesh, std::vector<std::pair<int, Spec>> inputs) {
  auto sharding = std::make_shared<graph::Sharding>();
  sharding->mesh = std::move(mesh);
  for (const graph::Input& input : graph.inputs) {
    sharding->inputs.emplace_back(input.shape.size());
  }
  for (auto& [index, spec] : inputs) sharding->inputs[index] = std::move(spec);
  for (const ir::Node* output : graph.outputs) {
    sharding->outputs.emplace_back(output->shape().size());
  }
  graph.sharding = std::move(sharding);
  return graph;
}

// Returns lines such as "all_reduce_sum x float32[8,12]: 384"; lines may repeat.
std::vector<std::string> Transfers(const shard::Program& program) {
  std::vector<std::string> transfers;
  for (const shard::Transfer& transfer : program.transfers) {
    std::string group;
    for (const int axis : program.groups[transfer.group]) {
      group += program.mesh.axes[axis].name;
    }
    transfers.push_back(
        StrCat(transfer.name, " ", group, " ", transfer.what, ": ", transfer.bytes));
  }
  return transfers;
}

int64_t BytesOf(const shard::Program& program, shard::Buffer::Kind kind, int index) {
  for (const shard::Buffer& buffer : program.buffers) {
    if (buffer.kind == kind && buffer.index == index) return buffer.bytes;
  }
  return -1;
}

void ExpectTrains(const graph::Graph& graph) {
  EXPECT_EQ(SimulatedDisagreement(graph, InputValues(graph), {1e-4}, 1), "");
  EXPECT_EQ(CompiledDisagreement(graph, InputValues(graph), {1e-4}, 2), "");
}

const Spec kRows = {{0}, {}};
const Spec kColumns = {{}, {0}};

TEST(Training, DataParallel) {
  const graph::Graph graph = Placed(MlpStep(), {{{"d", 4}}}, {{kX, kRows}, {kY, kRows}});
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  // The loss and two gradients, in one exchange.
  EXPECT_THAT(Transfers(*program), UnorderedElementsAre("all_reduce_sum d float32[1,1]: 12",
                                                        "all_reduce_sum d float32[1,8,12]: 1152",
                                                        "all_reduce_sum d float32[1,12,8]: 1152"));
  EXPECT_EQ(program->segments.size(), 2u);
  EXPECT_EQ(program->meetings.size(), 2u);
  ExpectTrains(graph);
}

TEST(Training, TensorParallel) {
  const graph::Graph graph = Placed(MlpStep(), {{{"m", 2}}},
                                    {{kW1, kColumns},
                                     {kW2, kRows},
                                     {kM1, kColumns},
                                     {kV1, kColumns},
                                     {kM2, kRows},
                                     {kV2, kRows}});
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  // The second product's partial sums, and nothing else.
  EXPECT_THAT(Transfers(*program), ElementsAre("all_reduce_sum m float32[16,8,1]: 512"));
  EXPECT_EQ(BytesOf(*program, shard::Buffer::Kind::kInput, kW1), kWidth * kHidden * 4 / 2);
  ExpectTrains(graph);
}

TEST(Training, DataAndTensorParallel) {
  const Spec columns = {{}, {1}};
  const Spec rows = {{1}, {}};
  const graph::Graph graph = Placed(MlpStep(), {{{"d", 2}, {"m", 2}}},
                                    {{kX, kRows},
                                     {kY, kRows},
                                     {kW1, columns},
                                     {kW2, rows},
                                     {kM1, columns},
                                     {kV1, columns},
                                     {kM2, rows},
                                     {kV2, rows}});
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  for (const std::string& transfer : Transfers(*program)) {
    EXPECT_THAT(transfer, ::testing::StartsWith("all_reduce_sum "));
  }
  EXPECT_EQ(program->transfers.size(), 4u);
  ExpectTrains(graph);
}

TEST(Training, ShardedMoments) {
  const graph::Graph graph =
      Placed(MlpStep(), {{{"d", 2}}},
             {{kX, kRows}, {kY, kRows}, {kM1, kRows}, {kV1, kRows}, {kM2, kRows}, {kV2, kRows}});
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> names;
  for (const shard::Transfer& transfer : program->transfers) names.push_back(transfer.name);
  // Each gradient's parts go to the devices of the moments; each weight is gathered.
  EXPECT_THAT(names, UnorderedElementsAre("all_reduce_sum", "reduce_scatter_sum",
                                          "reduce_scatter_sum", "all_gather", "all_gather"));
  EXPECT_EQ(BytesOf(*program, shard::Buffer::Kind::kInput, kM1), kWidth * kHidden * 4 / 2);
  EXPECT_EQ(BytesOf(*program, shard::Buffer::Kind::kInput, kW1), kWidth * kHidden * 4);
  ExpectTrains(graph);
}

TEST(Training, ShardedWeights) {
  std::vector<std::pair<int, Spec>> all;
  for (int i = 0; i < kNumInputs; ++i) all.emplace_back(i, kRows);
  const graph::Graph graph = Placed(MlpStep(), {{{"d", 2}}}, all);
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> names;
  for (const shard::Transfer& transfer : program->transfers) names.push_back(transfer.name);
  // Weights are gathered where they are used, gradients are scattered to the weights' devices.
  EXPECT_EQ(std::count(names.begin(), names.end(), "reduce_scatter_sum"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "all_reduce_sum"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "all_gather"), 2);
  for (int i = kW1; i < kNumInputs; ++i) {
    EXPECT_EQ(BytesOf(*program, shard::Buffer::Kind::kInput, i), kWidth * kHidden * 4 / 2) << i;
  }
  ExpectTrains(graph);
}

TEST(Training, LargeGradientsTakeTwoSteps) {
  ModelBuilder model;
  const Node x = model.Input({8, 256});
  const Node y = model.Input({8, 128});
  model.Output(model.ops.Sum(
      model.ops.Mul(model.ops.Reshape(x, {8, 256, 1}), model.ops.Reshape(y, {8, 1, 128})), {0}));
  const graph::Graph graph = Placed(model.Finish(), {{{"d", 4}}}, {{0, kRows}, {1, kRows}});
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(Transfers(*program), ElementsAre("reduce_scatter_sum d float32[32768]: 98304",
                                               "all_gather d float32[8192]: 98304"));
  ExpectTrains(graph);
}

TEST(Simulation, NoticesWhatIsPlannedWrong) {
  std::vector<std::pair<int, Spec>> all;
  for (int i = 0; i < kNumInputs; ++i) all.emplace_back(i, kRows);
  const graph::Graph graph = Placed(MlpStep(), {{{"d", 2}}}, all);
  const auto program = MakeProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(IsNoticed(graph, *program));
  const auto end = static_cast<int>(program->segments.size());
  for (size_t i = 0; i < program->meetings.size(); ++i) {
    if (program->meetings[i].segment == end) continue;
    shard::Program faulty = *program;
    faulty.meetings.erase(faulty.meetings.begin() + static_cast<int64_t>(i));
    EXPECT_TRUE(IsNoticed(graph, faulty)) << "without meeting " << i;
  }
  // All published buffers at the same offset.
  shard::Program faulty = *program;
  for (shard::Buffer& buffer : faulty.buffers) {
    if (buffer.kind == shard::Buffer::Kind::kPublished) buffer.offset = 0;
  }
  EXPECT_TRUE(IsNoticed(graph, faulty));
  EXPECT_FALSE(shard::Verify(faulty).ok());
  EXPECT_TRUE(shard::Verify(*program).ok());
}

compiler::CompiledProgram Compiled(const graph::Graph& graph, const drivers::Target& target) {
  auto program = compiler::Compile(graph, target, {});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : compiler::CompiledProgram();
}

// Published buffers have the same layout on a processor and on a GPU, and the number of exchanges
// is the same.
TEST(Training, AProcessorAndAGpuGoTogether) {
  std::vector<std::pair<int, Spec>> all;
  for (int i = 0; i < kNumInputs; ++i) all.emplace_back(i, kRows);
  const graph::Graph graph = Placed(MlpStep(), {{{"d", 2}}}, all);
  const auto on_gpu = Compiled(graph, numerics::SomeGpu());
  const auto on_processor = Compiled(graph, ProcessorTarget());
  const auto published = [](const compiler::CompiledProgram& program) {
    std::vector<std::string> parts;
    for (const compiler::KernelCall& call : program.calls) {
      for (const compiler::Argument& a : call.arguments) {
        if (a.member < 0) continue;
        parts.push_back(StrCat(a.offset, " ", a.bytes, " ", a.member, " ", a.group, " ", a.stride));
      }
    }
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    for (const compiler::Slot& slot : program.slots) {
      if (slot.kind == compiler::Slot::Kind::kPublished) parts.push_back(StrCat(slot.bytes));
    }
    for (const compiler::Exchange& exchange : program.exchanges) {
      parts.push_back(StrCat("exchange ", exchange.group));
    }
    return parts;
  };
  EXPECT_EQ(published(on_gpu), published(on_processor));
  EXPECT_EQ(on_gpu.groups.size(), 1u);
  EXPECT_EQ(on_gpu.exchanges.back().before_call, static_cast<int>(on_gpu.calls.size()));
}

TEST(Golden, ConvnetDataParallel) {
  const golden::KnownGraph step = golden::ConvnetStep({4, 16, 4, 3});
  // The batch and its labels.
  const graph::Graph graph =
      Placed(step.graph, {{{"data", 2}}}, {{0, {{0}, {}, {}, {}}}, {1, {{0}}}});
  EXPECT_EQ(golden::DifferenceFromFile("sharded/convnet_data_parallel.txt", ProgramText(graph)),
            "");
  EXPECT_EQ(SimulatedDisagreement(graph, InputValues(graph), {1e-3}, 1), "");
}

TEST(Golden, MlpTensorParallel) {
  const graph::Graph graph = Placed(MlpStep(), {{{"model", 2}}},
                                    {{kW1, kColumns},
                                     {kW2, kRows},
                                     {kM1, kColumns},
                                     {kV1, kColumns},
                                     {kM2, kRows},
                                     {kV2, kRows}});
  EXPECT_EQ(golden::DifferenceFromFile("sharded/mlp_tensor_parallel.txt", ProgramText(graph)), "");
}

}  // namespace
}  // namespace kiln::sharded
