#include "tests/golden/device_kernels.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/widen.h"
#include "compiler/kernel/lower.h"
#include "compiler/pipeline.h"
#include "tests/golden/graphs.h"
#include "tests/numerics/random/graph.h"

namespace kiln::golden {
namespace {

// A product of short floats, which matrix units take.
absl::StatusOr<kernel::Kernel> HalfMatmul(int rows, int columns, int terms, ir::Context& context) {
  return kernel::ParseKernel(
      absl::StrCat("buffer b0 float16[", rows * terms, "] read\nbuffer b1 float16[",
                   columns * terms, "] read\nbuffer b2 float32[", rows * columns,
                   "] write\nstage r0:", rows, " r1:", columns, " reduce r2:", terms, "\n  b2[r0*",
                   columns, " + r1] = sum(float32(b0[r0*", terms, " + r2])*float32(b1[r1*", terms,
                   " + r2]))\n"),
      context);
}

}  // namespace

absl::StatusOr<std::vector<kernel::Kernel>> KernelsOf(const graph::Graph& graph,
                                                      const drivers::Target& target,
                                                      ir::Context& context) {
  std::vector<compiler::PassReport> reports;
  auto state = compiler::RunPasses(graph, target, {.first = "normalize"}, {}, &reports);
  if (!state.ok()) return state.status();
  std::vector<kernel::Kernel> kernels;
  for (size_t i = 0; i < state->partition.groups.size(); ++i) {
    auto lowered = kernel::Lower(state->partition, static_cast<int>(i), context);
    if (!lowered.ok()) return lowered.status();
    kernels.push_back(lowered->kernel);
  }
  return kernels;
}

absl::StatusOr<std::vector<kernel::Kernel>> KnownKernels(const DescribedDevice& device,
                                                         ir::Context& context) {
  std::vector<kernel::Kernel> kernels = {
      codegen::MatmulKernel(context, 512, 512, 512),
      codegen::MatmulKernel(context, 300, 200, 1000, true, false),
      codegen::MatmulKernel(context, 1, 4096, 4096),
      codegen::MatmulKernel(context, 3, 4096, 4096, false, true),
      codegen::ConvolutionKernel(context, {128, 32, 32, 24, 5}),
      codegen::ConvolutionInputGradientKernel(context, {16, 32, 64, 14, 3, 1}),
      codegen::ConvolutionWeightGradientKernel(context, {128, 3, 64, 28, 4, 1, 2}),
      codegen::SoftmaxKernel(context, 4096, 1000),
      codegen::ChainKernel(context, 1 << 24),
  };
  for (const auto& [rows, columns, terms] :
       {std::tuple(1024, 1024, 1024), std::tuple(1000, 10, 768), std::tuple(112, 200, 100)}) {
    auto kernel = HalfMatmul(rows, columns, terms, context);
    if (!kernel.ok()) return kernel.status();
    kernels.push_back(*std::move(kernel));
  }
  for (const KnownGraph& known : KnownGraphs()) {
    auto of_graph = KernelsOf(known.graph, device.target, context);
    if (!of_graph.ok()) return of_graph.status();
    kernels.insert(kernels.end(), of_graph->begin(), of_graph->end());
  }
  return kernels;
}

absl::StatusOr<std::vector<kernel::Kernel>> RandomKernels(uint64_t seed,
                                                          const DescribedDevice& device,
                                                          ir::Context& context) {
  numerics::RandomGraphOptions options;
  options.seed = seed;
  options.wide = seed % 2 == 0;
  const numerics::RandomGraph random = numerics::MakeRandomGradientGraph(options);
  auto differentiated = autodiff::Differentiate(random.graph);
  if (!differentiated.ok()) return differentiated.status();
  return KernelsOf(graph::Simplify(graph::Widen(*differentiated)), device.target, context);
}

}  // namespace kiln::golden
