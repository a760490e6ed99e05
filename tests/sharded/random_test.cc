// Random graphs on random meshes: on simulated devices, and some compiled. KILN_SHARDED_GRAPHS is
// how many; more for a long search.
#include <cstdlib>
#include <random>
#include <string>

#include "compiler/autodiff/differentiate.h"
#include "gtest/gtest.h"
#include "tests/numerics/random_graph.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using graph::Mesh;

uint64_t NumGraphs() {
  const char* wanted = std::getenv("KILN_SHARDED_GRAPHS");
  return wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
}
uint64_t FirstGraph() {
  const char* wanted = std::getenv("KILN_SHARDED_SEED");
  return wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
}

Mesh RandomMesh(std::mt19937_64& random) {
  static const auto& meshes = *new std::vector<Mesh>{
      {{{"x", 2}}},           {{{"x", 3}}},           {{{"x", 4}}},
      {{{"x", 2}, {"y", 2}}}, {{{"x", 2}, {"y", 3}}}, {{{"x", 2}, {"y", 1}, {"z", 2}}}};
  return meshes[random() % meshes.size()];
}

// As numerics makes it, on a mesh; without what has no outputs.
numerics::RandomGraph MakeGraph(uint64_t seed) {
  const numerics::RandomGraphOptions options{
      .seed = seed, .steps = 3 + static_cast<int>(seed % 12), .wide = seed % 8 == 3};
  numerics::RandomGraph random = seed % 3 == 0 ? numerics::MakeRandomGradientGraph(options)
                                               : numerics::MakeRandomGraph(options);
  std::mt19937_64 bits(seed);
  const Mesh mesh = RandomMesh(bits);
  if (!random.graph.outputs.empty()) {
    random.graph = OnMesh(random.graph, mesh, bits, seed % 2 == 0);
  }
  return random;
}

TEST(RandomGraphs, OnSimulatedDevices) {
  for (uint64_t seed = FirstGraph(); seed < FirstGraph() + NumGraphs(); ++seed) {
    const numerics::RandomGraph random = MakeGraph(seed);
    if (random.graph.outputs.empty()) continue;
    EXPECT_EQ(SimulatedDisagreement(random.graph, random.inputs, random.tolerances, seed), "")
        << "seed " << seed;
  }
}

// Graphs that once were wrong.
TEST(RandomGraphs, Found) {
  // A slice at the place's number, whose bounds the schedule's padding did not keep to.
  for (const uint64_t seed : {1270}) {
    const numerics::RandomGraph random = MakeGraph(seed);
    EXPECT_EQ(CompiledDisagreement(random.graph, random.inputs, random.tolerances, seed), "")
        << "seed " << seed;
  }
}

TEST(RandomGraphs, Compiled) {
  for (uint64_t seed = FirstGraph(); seed < FirstGraph() + NumGraphs() / 3; ++seed) {
    const numerics::RandomGraph random = MakeGraph(seed);
    if (random.graph.outputs.empty()) continue;
    EXPECT_EQ(CompiledDisagreement(random.graph, random.inputs, random.tolerances, seed), "")
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace kiln::sharded
