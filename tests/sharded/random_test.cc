// Random graphs on random meshes, with random hints, and in stages on several devices: on simulated
// devices, and some compiled. For a long search, KILN_SHARDED_GRAPHS is the number of graphs,
// KILN_SHARDED_COMPILED how many of them are compiled (by default a third), and KILN_SHARDED_SEED
// the first seed.
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/text.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/numerics/random/graph.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using graph::Mesh;

uint64_t Number(const char* variable, uint64_t otherwise) {
  return static_cast<uint64_t>(NumberFromEnvironment(variable, static_cast<int64_t>(otherwise)));
}
uint64_t NumGraphs() { return Number("KILN_SHARDED_GRAPHS", 60); }
uint64_t NumCompiled() { return Number("KILN_SHARDED_COMPILED", NumGraphs() / 3); }
uint64_t FirstGraph() { return Number("KILN_SHARDED_SEED", 1); }

Mesh RandomMesh(std::mt19937_64& random) {
  static const auto& meshes = *new std::vector<Mesh>{
      {{{"x", 2}}},           {{{"x", 3}}},           {{{"x", 4}}},
      {{{"x", 2}, {"y", 2}}}, {{{"x", 2}, {"y", 3}}}, {{{"x", 2}, {"y", 1}, {"z", 2}}}};
  return meshes[random() % meshes.size()];
}

// A graph from the generator of numerics.
numerics::RandomGraph MakePlain(uint64_t seed) {
  const numerics::RandomGraphOptions options{
      .seed = seed, .steps = 3 + static_cast<int>(seed % 12), .wide = seed % 8 == 3};
  return seed % 3 == 0 ? numerics::MakeRandomGradientGraph(options)
                       : numerics::MakeRandomGraph(options);
}

// Puts a graph on a mesh; drops graphs without outputs.
numerics::RandomGraph MakeGraph(uint64_t seed) {
  numerics::RandomGraph random = MakePlain(seed);
  std::mt19937_64 bits(seed);
  const Mesh mesh = RandomMesh(bits);
  if (!random.graph.outputs.empty()) {
    random.graph = OnMesh(random.graph, mesh, bits, seed % 2 == 0);
  }
  return random;
}

numerics::RandomGraph MakeGraphInStages(uint64_t seed) {
  numerics::RandomGraph random = MakePlain(seed);
  std::mt19937_64 bits(seed);
  if (!random.graph.outputs.empty()) {
    random.graph = InStages(random.graph, 2 + static_cast<int>(seed % 3), bits);
  }
  return random;
}

using Disagreement = std::string (*)(const graph::Graph&, absl::Span<const ops::HostTensor>,
                                     std::vector<double>, uint64_t);

// A failure contains the seed that reproduces it.
void CheckAll(uint64_t count, Disagreement disagreement,
              numerics::RandomGraph (*make)(uint64_t) = MakeGraph) {
  uint64_t checked = 0;
  uint64_t without_outputs = 0;
  for (uint64_t seed = FirstGraph(); seed < FirstGraph() + count; ++seed) {
    const numerics::RandomGraph random = make(seed);
    if (random.graph.outputs.empty()) {
      ++without_outputs;
      continue;
    }
    ++checked;
    EXPECT_EQ(disagreement(random.graph, random.inputs, random.tolerances, seed), "")
        << "seed " << seed;
  }
  std::cout << checked << " graphs, and " << without_outputs << " without outputs\n";
  EXPECT_GE(checked, count / 2);
}

TEST(RandomGraphs, OnSimulatedDevices) { CheckAll(NumGraphs(), SimulatedDisagreement); }

// Multiples of 1/4 from -2 to 2, which every dtype represents or truncates.
std::vector<ops::HostTensor> Inputs(const graph::Graph& graph) {
  std::mt19937_64 random(1);
  std::vector<ops::HostTensor> inputs;
  for (const graph::Input& input : graph.inputs) {
    std::vector<double> values(static_cast<size_t>(ir::NumElements(input.shape)));
    for (double& value : values) value = static_cast<double>(random() % 17) / 4 - 2;
    inputs.push_back(ops::HostTensor::Of(input.dtype, input.shape, values));
  }
  return inputs;
}

// Graphs that once failed, stored as files, because a seed's graph changes with the generator.
TEST(RandomGraphs, Found) {
  // A slice at the coordinate's number, whose bounds the schedule's padding violated.
  for (const char* name : {"slice_at_the_place"}) {
    std::ifstream file(absl::StrCat(KILN_SHARDED_TEST_DATA, "/", name, ".txt"));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto graph = graph::Parse(text);
    ASSERT_TRUE(graph.ok()) << name << ": " << graph.status();
    for (const uint64_t order : {1, 2, 3})
      EXPECT_EQ(CompiledDisagreement(*graph, Inputs(*graph), {0.02}, order), "") << name;
  }
}

TEST(RandomGraphs, Compiled) { CheckAll(NumCompiled(), CompiledDisagreement); }

TEST(RandomGraphs, InStagesOnSimulatedDevices) {
  CheckAll(NumGraphs(), SimulatedDisagreement, MakeGraphInStages);
}

TEST(RandomGraphs, InStagesCompiled) {
  CheckAll(NumCompiled(), CompiledDisagreement, MakeGraphInStages);
}

}  // namespace
}  // namespace kiln::sharded
