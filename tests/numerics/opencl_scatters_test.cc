// Scatters that threads share on an OpenCL device, against the interpreter.
#include "gtest/gtest.h"
#include "tests/numerics/run_opencl.h"
#include "tests/numerics/scatter_cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;

RunGraph OnThreads() {
  return [](const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs) {
    return RunOnOpenCl(graph, inputs, Scheduled::kThreads);
  };
}

// Few of them: the device's compiler takes most of a second for a kernel.
TEST(OpenClScattersTest, FewDestinations) {
  ExpectScatterRight(FindScatterCase("few_destinations"), "mul", DType::kFloat32, true,
                     OnThreads());
}
TEST(OpenClScattersTest, ManyDestinations) {
  ExpectScatterRight(FindScatterCase("many_destinations"), "add", DType::kFloat32, false,
                     OnThreads());
  ExpectScatterRight(FindScatterCase("many_destinations"), "set", DType::kInt8, false, OnThreads());
}
TEST(OpenClScattersTest, PiecesOfOneDestination) {
  ExpectScatterRight(FindScatterCase("one_destination"), "add", DType::kFloat32, false,
                     OnThreads());
}
TEST(OpenClScattersTest, Runs) {
  ExpectScatterRight(FindScatterCase("runs"), "min", DType::kInt32, false, OnThreads());
}

}  // namespace
}  // namespace kiln::numerics
