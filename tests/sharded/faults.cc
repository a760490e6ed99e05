#include "tests/sharded/faults.h"

#include <cstdint>

#include "compiler/shard/testing/simulate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

constexpr uint64_t kOrders = 300;

}  // namespace

std::vector<ops::HostTensor> InputValues(const graph::Graph& graph) {
  std::vector<ops::HostTensor> inputs;
  for (const graph::Input& input : graph.inputs) {
    numerics::OperandSpec spec{input.shape, 0.1, 1, input.dtype};
    inputs.push_back(
        numerics::OperandValue(spec, ir::DType::kFloat32, static_cast<int>(inputs.size())));
  }
  return inputs;
}

bool IsNoticed(const graph::Graph& graph, const shard::Program& program) {
  const auto inputs = InputValues(graph);
  const auto right = shard::Simulate(graph, *MakeProgram(graph), inputs, 0);
  EXPECT_TRUE(right.ok()) << right.status();
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    const auto results = shard::Simulate(graph, program, inputs, seed);
    if (!results.ok()) return true;
    for (size_t i = 0; i < results->size(); ++i) {
      if ((*results)[i].bytes != (*right)[i].bytes) return true;
    }
  }
  return false;
}

}  // namespace kiln::sharded
