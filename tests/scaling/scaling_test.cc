// Runs graphs of one kind in several sizes through all steps before code generation. The measure of
// work is the number and bytes of allocations: every walk, table and queue of the compiler
// contributes to it, and it is the same on every machine.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/kernel/lower.h"
#include "compiler/pipeline.h"
#include "tests/golden/model_builder.h"

namespace {

std::atomic<int64_t> allocations = 0;
std::atomic<int64_t> allocated_bytes = 0;

void* Counted(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace kiln {
namespace {

using golden::ModelBuilder;
using Node = const ir::Node*;

struct Outcome {
  int64_t allocations = 0;
  int64_t bytes = 0;
  size_t nodes = 0;
  size_t groups = 0;
  std::set<std::string> kernels;
};

using Maker = std::function<void(ModelBuilder& model, int size)>;

// Differentiates and simplifies (in the builder), prints, partitions, plans and lowers.
Outcome Compile(const Maker& make, int size) {
  Outcome outcome;
  ModelBuilder model;
  make(model, size);
  const int64_t count = allocations;
  const int64_t bytes = allocated_bytes;
  const graph::Graph graph = model.Finish();
  outcome.nodes = graph.context->size();
  EXPECT_FALSE(graph::Print(graph).empty());
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, {}, {.first = "normalize"}, {}, &reports);
  EXPECT_TRUE(state.ok()) << state.status();
  const partition::Partition& partition = state->partition;
  outcome.groups = partition.groups.size();
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    auto lowered = kernel::Lower(partition, static_cast<int>(i), context);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    outcome.kernels.insert(kernel::Print(lowered->kernel));
  }
  outcome.allocations = allocations - count;
  outcome.bytes = allocated_bytes - bytes;
  return outcome;
}

// Elementwise work with an occasional sum.
void Chain(ModelBuilder& model, int size) {
  Node x = model.Input({32, 32});
  for (int i = 0; i < size / 2; ++i) {
    x = model.ops.Mul(x, 1.001);
    x = i % 8 == 7 ? model.ops.Add(x, model.ops.Sum(x, {1}, true)) : model.ops.Sin(x);
  }
  model.Output(x);
}

// The chain with its gradient.
void ChainGradient(ModelBuilder& model, int size) {
  const Node start = model.Input({32, 32});
  Node x = start;
  for (int i = 0; i < size / 2; ++i) {
    x = model.ops.Mul(x, 1.001);
    x = i % 8 == 7 ? model.ops.Add(x, model.ops.Sum(x, {1}, true)) : model.ops.Sin(x);
  }
  const Node y = model.ops.Sum(x, {0, 1});
  model.Output(model.Gradient(y, start));
}

// Sums that are added up one after another.
void ChainedSums(ModelBuilder& model, int size) {
  Node x = model.Input({32, 32});
  Node total = model.Input({32, 1});
  for (int i = 0; i < size / 3; ++i) {
    total = model.ops.Add(total, model.ops.Sum(model.ops.Mul(x, 1.0 + i), {1}, true));
  }
  model.Output(total);
}

// Many inputs, added up in pairs.
void Tree(ModelBuilder& model, int size) {
  std::vector<Node> level;
  for (int i = 0; i < size / 2; ++i) level.push_back(model.Input({64}));
  while (level.size() > 1) {
    std::vector<Node> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(model.ops.Add(level[i], model.ops.Sin(level[i + 1])));
    }
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  model.Output(level[0]);
}

// Equal layers with gradients and updates.
void Layers(ModelBuilder& model, int size) {
  std::vector<Node> parameters;
  Node x = model.Input({64, 64});
  for (int i = 0; i < size / 100; ++i) {
    const Node weight = model.Input({64, 64});
    const Node scale = model.Input({64});
    const Node shift = model.Input({64});
    const Node inner = model.Op("layer_norm", {x, scale, shift});
    x = model.ops.Add(x, model.Op("relu", {model.Op("matmul", {inner, weight})}));
    parameters.insert(parameters.end(), {weight, scale, shift});
  }
  const Node loss = model.Op("mean", {model.ops.Mul(x, x)});
  model.Output(loss);
  for (const Node parameter : parameters) {
    const Node gradient = model.Gradient(loss, parameter);
    model.Update(parameter, model.ops.Sub(parameter, model.ops.Mul(gradient, 0.01)));
  }
}

// Equal layers, each with a sum among the results.
void LayersWithSums(ModelBuilder& model, int size) {
  ops::Builder& ops = model.ops;
  Node x = model.Input({128, 256});
  for (int layer = 0; layer < size / 30; ++layer) {
    const Node weight = model.Input({256, 256});
    const Node product = ops.Mul(ops.Reshape(x, {128, 1, 256}), ops.Reshape(weight, {1, 256, 256}));
    const Node y = ops.Add(ops.Reshape(ops.Sum(product, {2}), {128, 256}), model.Input({256}));
    const Node centered = ops.Sub(y, ops.Mul(ops.Sum(y, {1}, true), 1.0 / 256));
    const Node variance = ops.Mul(ops.Sum(ops.Mul(centered, centered), {1}, true), 1.0 / 256);
    x = ops.Mul(centered, ops.Reciprocal(ops.Sqrt(ops.Add(variance, 1e-5))));
    model.Output(ops.Sum(x, {0}));
  }
  model.Output(x);
}

struct Kind {
  const char* name;
  Maker make;
};

class ScalingTest : public testing::TestWithParam<Kind> {};

TEST_P(ScalingTest, WorkGrowsWithTheNodes) {
  std::vector<Outcome> outcomes;
  for (const int size : {1000, 4000, 16000}) {
    outcomes.push_back(Compile(GetParam().make, size));
    const Outcome& last = outcomes.back();
    RecordProperty("nodes_" + std::to_string(size), static_cast<int>(last.nodes));
    std::printf("%6zu nodes: %8.1f allocations and %9.0f bytes a node, %zu groups, %zu kernels\n",
                last.nodes, static_cast<double>(last.allocations) / last.nodes,
                static_cast<double>(last.bytes) / last.nodes, last.groups, last.kernels.size());
  }
  // Work of n log n: with four times the nodes, work per node grows little.
  auto per_node = [](int64_t work, const Outcome& outcome) {
    return static_cast<double>(work) / static_cast<double>(outcome.nodes);
  };
  for (const size_t i : {1, 2}) {
    const Outcome &less = outcomes[i - 1], &more = outcomes[i];
    EXPECT_LT(per_node(more.allocations, more), 1.25 * per_node(less.allocations, less));
    EXPECT_LT(per_node(more.bytes, more), 1.25 * per_node(less.bytes, less));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScalingTest,
                         testing::Values(Kind{"chain", Chain}, Kind{"chained_sums", ChainedSums},
                                         Kind{"chain_gradient", ChainGradient}, Kind{"tree", Tree},
                                         Kind{"layers", Layers},
                                         Kind{"layers_with_sums", LayersWithSums}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EqualLayersTest, ShareTheirKernels) {
  const Outcome few = Compile(Layers, 1000);
  const Outcome many = Compile(Layers, 4000);
  EXPECT_GT(many.groups, 3 * few.groups);
  // Small updates share kernels in groups, the last of which differs.
  EXPECT_LE(many.kernels.size(), few.kernels.size() + 1);
}

// No walk recurses along the graph: the depth would exceed any stack.
TEST(DepthTest, DeepChains) {
  struct Deep {
    Maker make;
    int size;
  };
  for (const Deep& deep :
       {Deep{Chain, 100000}, Deep{ChainedSums, 100000}, Deep{ChainGradient, 20000}}) {
    EXPECT_GT(Compile(deep.make, deep.size).groups, 50);
  }
}

}  // namespace
}  // namespace kiln
