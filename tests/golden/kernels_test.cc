// Compares the kernels of known graphs with files, so that reviews show changes in fusion, and
// checks that these kernels compute what the graphs mean.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/widen.h"
#include "compiler/kernel/bounds.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/partition/partition.h"
#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/graphs.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/random/graph.h"

namespace kiln::golden {
namespace {

using ops::HostTensor;
using partition::Partition;

absl::StatusOr<Partition> MakePartition(const graph::Graph& graph) {
  std::vector<compiler::PassReport> reports;
  auto state = compiler::RunPasses(graph, {}, {.first = "normalize"}, {}, &reports);
  if (!state.ok()) return state.status();
  return std::move(state->partition);
}

// The text is complete: a kernel that is parsed from it prints the same text.
absl::Status ReadsBack(const kernel::Kernel& kernel) {
  const std::string text = kernel::Print(kernel);
  ir::Context context;
  absl::StatusOr<kernel::Kernel> again = kernel::ParseKernel(text, context);
  if (!again.ok()) return again.status();
  if (kernel::Print(*again) == text) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("reads back as\n", kernel::Print(*again)));
}

absl::StatusOr<std::string> PrintKernels(const Partition& partition) {
  std::string text;
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    absl::StatusOr<kernel::LoweredKernel> lowered =
        kernel::Lower(partition, static_cast<int>(i), context);
    if (!lowered.ok()) return lowered.status();
    if (absl::Status s = kernel::Verify(lowered->kernel); !s.ok()) return s;
    if (absl::Status s = ReadsBack(lowered->kernel); !s.ok()) return s;
    absl::StrAppend(&text, "# ", lowered->kernel.name, "\n", kernel::Print(lowered->kernel), "\n");
  }
  return text;
}

std::vector<HostTensor> MakeInputs(const graph::Graph& graph) {
  std::vector<HostTensor> inputs;
  for (const graph::Input& input : graph.inputs) {
    numerics::OperandSpec spec{input.shape, 0.1, 2, input.dtype};
    if (ir::IsInteger(input.dtype)) spec.high = 7;
    inputs.push_back(
        numerics::OperandValue(spec, ir::DType::kFloat32, static_cast<int>(inputs.size())));
  }
  return inputs;
}

// Returns an empty text if interpreting the kernels gives the graph's results.
std::string Disagreement(const graph::Graph& graph, const std::vector<HostTensor>& inputs,
                         absl::Span<const double> tolerances) {
  absl::StatusOr<Partition> partition = MakePartition(graph);
  if (!partition.ok()) return partition.status().ToString();
  absl::StatusOr<kernel::PartitionResults> actual = kernel::Interpret(*partition, inputs);
  if (!actual.ok()) return actual.status().ToString();
  std::vector<const ir::Node*> roots = graph.outputs;
  for (const graph::Update& update : graph.updates) roots.push_back(update.value);
  absl::StatusOr<std::vector<HostTensor>> expected = ops::Evaluate(roots, inputs);
  if (!expected.ok()) return expected.status().ToString();
  std::vector<HostTensor> results = actual->outputs;
  results.insert(results.end(), actual->updates.begin(), actual->updates.end());
  if (results.size() != expected->size()) return "results are missing";
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string difference =
        numerics::Difference(results[i], (*expected)[i], tolerances[i], tolerances[i]);
    if (!difference.empty()) return absl::StrCat("result ", i, ": ", difference);
  }
  return "";
}

// Uses one tolerance for all results.
std::string Disagreement(const graph::Graph& graph, const std::vector<HostTensor>& inputs,
                         double tolerance) {
  const std::vector<double> tolerances(graph.outputs.size() + graph.updates.size(), tolerance);
  return Disagreement(graph, inputs, tolerances);
}

class KnownGraphTest : public testing::TestWithParam<KnownGraph> {};

TEST_P(KnownGraphTest, KernelsAreAsInTheFile) {
  absl::StatusOr<Partition> partition = MakePartition(GetParam().graph);
  ASSERT_TRUE(partition.ok()) << partition.status();
  absl::StatusOr<std::string> text = PrintKernels(*partition);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(DifferenceFromFile(absl::StrCat("kernels/", GetParam().name, ".txt"), *text), "");
}

TEST_P(KnownGraphTest, KernelsComputeTheGraph) {
  EXPECT_EQ(Disagreement(GetParam().graph, MakeInputs(GetParam().graph), 1e-4), "");
}

INSTANTIATE_TEST_SUITE_P(Golden, KnownGraphTest, testing::ValuesIn(KnownGraphs()),
                         [](const auto& info) { return info.param.name; });

// Fuses, lowers and counts; prints the time for people.
size_t CountKernels(const KnownGraph& step) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Partition> partition = MakePartition(step.graph);
  const auto fused = std::chrono::steady_clock::now();
  if (!partition.ok()) ADD_FAILURE() << partition.status();
  absl::StatusOr<std::string> text = PrintKernels(*partition);
  const auto lowered = std::chrono::steady_clock::now();
  if (!text.ok()) ADD_FAILURE() << text.status();
  auto milliseconds = [](auto duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  std::cout << partition->groups.size() << " kernels, fused in " << milliseconds(fused - start)
            << " ms, lowered in " << milliseconds(lowered - fused) << " ms\n";
  if (std::getenv("KILN_PRINT_KERNELS") != nullptr) {
    std::cout << partition::Print(*partition) << "\n" << *text;
  }
  return partition->groups.size();
}

TEST(ConvnetStep, FewKernels) { EXPECT_LE(CountKernels(ConvnetStep({})), 24); }

TEST(TransformerStep, FewKernels) { EXPECT_LE(CountKernels(TransformerStep({})), 60); }

TEST(TransformerStep, KernelsComputeTheGraph) {
  const KnownGraph step = TransformerStep({2, 8, 16, 2, 20});
  EXPECT_EQ(Disagreement(step.graph, MakeInputs(step.graph), 1e-3), "");
}

TEST(ConvnetStep, KernelsComputeTheGraph) {
  const KnownGraph step = ConvnetStep({3, 16, 4, 3});
  EXPECT_EQ(Disagreement(step.graph, MakeInputs(step.graph), 1e-3), "");
}

std::string DifferentiatedDisagreement(const numerics::RandomGraph& random) {
  absl::StatusOr<graph::Graph> differentiated = autodiff::Differentiate(random.graph);
  if (!differentiated.ok()) return differentiated.status().ToString();
  return Disagreement(graph::Simplify(graph::Widen(*differentiated)), random.inputs,
                      random.tolerances);
}

// KILN_RANDOM_GRAPHS is the number of graphs; increase it for a long search.
uint64_t NumRandomGraphs() {
  return static_cast<uint64_t>(NumberFromEnvironment("KILN_RANDOM_GRAPHS", 150));
}

TEST(Random, KernelsComputeTheGraph) {
  for (uint64_t seed = 0; seed < NumRandomGraphs(); ++seed) {
    const numerics::RandomGraph random = numerics::MakeRandomGraph(seed, 30);
    EXPECT_EQ(DifferentiatedDisagreement(random), "") << "seed " << seed;
  }
}

TEST(Random, KernelsComputeGradients) {
  for (uint64_t seed = 0; seed < NumRandomGraphs(); ++seed) {
    const numerics::RandomGraph random = numerics::MakeRandomGradientGraph(seed, 12);
    EXPECT_EQ(DifferentiatedDisagreement(random), "") << "seed " << seed;
  }
}

TEST(Cases, KernelsComputeEveryOp) {
  for (const numerics::Case& test_case : numerics::Cases()) {
    absl::StatusOr<graph::Graph> graph = numerics::MakeGraph(test_case, ir::DType::kFloat32);
    ASSERT_TRUE(graph.ok()) << graph.status();
    // Without ops that only affect gradients, or devices of a mesh.
    absl::StatusOr<graph::Graph> plain = autodiff::Differentiate(*graph);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const auto inputs = numerics::OperandValues(test_case, ir::DType::kFloat32);
    EXPECT_EQ(Disagreement(graph::Simplify(*plain), inputs, 1e-3), "") << test_case.name;
  }
}

}  // namespace
}  // namespace kiln::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--update") setenv("KILN_UPDATE_GOLDEN", "1", 1);
  }
  return RUN_ALL_TESTS();
}
