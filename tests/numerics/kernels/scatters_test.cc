// Scatters on machines with thousands of threads: run on the host as blocks of threads, and as PTX
// by its interpreter, they give the correct results; for a described H100, no thread processes many
// positions alone.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/kernel/lower.h"
#include "compiler/ops/builder.h"
#include "compiler/partition/scatter/spread_scatter.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/testing/interpret.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "gtest/gtest.h"
#include "tests/launches/h100.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/kernels/proved_loops.h"
#include "tests/numerics/kernels/serial_depth.h"
#include "tests/numerics/machine_codes/machine_code.h"
#include "tests/numerics/machine_codes/scatter_cases.h"
#include "tests/numerics/machine_codes/some_gpu.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::ScatterMode;
using kernel::Kernel;
using ops::HostTensor;

absl::Status RunScatter(const Kernel& kernel, absl::Span<HostTensor* const> globals) {
  for (const kernel::Stage& stage : kernel.stages) {
    if (!stage.ordered_ranges.empty()) return absl::InternalError("a scatter was left");
  }
  const auto loops = ProvedLoops(kernel, search::ChooseThreads(kernel, SomeGpu()));
  return loops.ok() ? schedule::Interpret(*loops, globals) : loops.status();
}

RunGraph OnHost() {
  return [](const graph::Graph& graph,
            absl::Span<const HostTensor> inputs) -> absl::StatusOr<kernel::PartitionResults> {
    const auto state = Passes(graph, SomeGpu());
    if (!state.ok()) return state.status();
    return kernel::RunPartition(state->partition, inputs, RunScatter);
  };
}

std::vector<ScatterCase> ScatterCasesOf(bool large) {
  std::vector<ScatterCase> cases;
  for (const ScatterCase& scatter : ScatterCases()) {
    if (scatter.large == large) cases.push_back(scatter);
  }
  return cases;
}
std::string NameOf(const testing::TestParamInfo<ScatterCase>& info) { return info.param.name; }

class ScattersTest : public testing::TestWithParam<ScatterCase> {};

TEST_P(ScattersTest, OnHost) {
  for (const char* mode : kScatterModes) {
    ExpectScatterRight(GetParam(), mode, DType::kFloat32, false, OnHost());
  }
  ExpectScatterRight(GetParam(), "add", DType::kFloat32, true, OnHost());
}

TEST_P(ScattersTest, OnPtx) {
  for (const char* mode : kScatterModes) {
    ExpectScatterRight(GetParam(), mode, DType::kFloat32, true, On(Ptx()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScattersTest, testing::ValuesIn(ScatterCasesOf(false)), NameOf);

class LargeScattersTest : public testing::TestWithParam<ScatterCase> {};

TEST_P(LargeScattersTest, OnPtx) {
  for (const char* mode : {"add", "set"}) {
    ExpectScatterRight(GetParam(), mode, DType::kFloat32, false, On(Ptx()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LargeScattersTest, testing::ValuesIn(ScatterCasesOf(true)), NameOf);

class ScatterDTypesTest : public testing::TestWithParam<DType> {};

TEST_P(ScatterDTypesTest, EachMode) {
  for (const std::string mode : kScatterModes) {
    if (GetParam() == DType::kBool && mode != "set") continue;
    for (const char* name : {"few_destinations", "many_destinations"}) {
      ExpectScatterRight(FindScatterCase(name), mode, GetParam(), false, On(Ptx()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScatterDTypesTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

struct ScatterSize {
  std::string name;
  int64_t positions, destinations, columns;
};

class ScatterDepthTest : public testing::TestWithParam<ScatterSize> {};

// The sum over consecutive kernels. Only the number of kernels that merge runs, and the levels of
// pieces, grow with the positions, logarithmically.
constexpr int64_t kDepthMax = 4096;
// One loop within a kernel.
constexpr int64_t kKernelDepthMax = 2500;

TEST_P(ScatterDepthTest, IsBounded) {
  const auto& [name, positions, destinations, columns] = GetParam();
  for (const ScatterMode mode : {ScatterMode::kAdd, ScatterMode::kSet, ScatterMode::kMax}) {
    graph::Graph graph;
    graph.context = std::make_shared<ir::Context>();
    graph.inputs = {{DType::kInt64, {positions}}, {DType::kFloat32, {positions, columns}}};
    ops::Builder b(*graph.context);
    graph.outputs = {b.Scatter(b.Full(DType::kFloat32, {destinations, columns}, 0),
                               b.Input(0, DType::kInt64, {positions}),
                               b.Input(1, DType::kFloat32, {positions, columns}), 0, mode)};
    const auto state = Passes(graph, launches::H100());
    ASSERT_TRUE(state.ok()) << state.status();
    int64_t depth = 0;
    for (size_t i = 0; i < state->partition.groups.size(); ++i) {
      ir::Context context;
      const auto lowered = kernel::Lower(state->partition, static_cast<int>(i), context);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const Kernel& kernel = lowered->kernel;
      const auto program = schedule::Apply(kernel, search::ChooseThreads(kernel, launches::H100()));
      ASSERT_TRUE(program.ok()) << program.status();
      depth += SerialDepth(*program);
      EXPECT_LE(SerialDepth(*program), kKernelDepthMax) << kernel::Print(kernel);
    }
    EXPECT_LE(depth, kDepthMax) << ir::Name(mode);
    // Nine kernels, and one more for each time that runs and pieces double.
    const double doublings = std::log2(static_cast<double>(positions));
    EXPECT_LE(state->partition.groups.size(), 9 + std::max(0.0, doublings - 9));
  }
}

INSTANTIATE_TEST_SUITE_P(H100, ScatterDepthTest,
                         testing::Values(ScatterSize{"embedding_of_gpt2", 8 * 256, 50257, 768},
                                         ScatterSize{"ten_classes", 1'000'000, 10, 1},
                                         ScatterSize{"bytes", 1'000'000, 256, 1},
                                         ScatterSize{"words", 1'000'000, 50257, 1},
                                         ScatterSize{"segments", 1'000'000, 1000, 16}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
