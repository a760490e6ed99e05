#include "tests/full_size/layer_kernels.h"

#include <algorithm>

#include "compiler/kernel/lower.h"
#include "compiler/pipeline.h"

namespace kiln::full_size {
namespace {

struct Lowered {
  std::vector<std::string> texts;
  // The sizes of the largest kernel and buffer.
  int64_t points = 0;
  int64_t elements = 0;
};

absl::StatusOr<Lowered> Lower(const graph::Graph& graph) {
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph, {}, {.last = "partition"}, {}, &reports);
  if (!state.ok()) return state.status();
  const partition::Partition& partition = state->partition;
  Lowered lowered;
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    const auto one = kernel::Lower(partition, static_cast<int>(i), context);
    if (!one.ok()) return one.status();
    lowered.texts.push_back(kernel::Print(one->kernel));
    lowered.points = std::max(lowered.points, kernel::CountPoints(one->kernel));
    for (const kernel::Buffer& buffer : one->kernel.buffers) {
      lowered.elements = std::max(lowered.elements, buffer.elements);
    }
  }
  return lowered;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> KernelsOf(const graph::Graph& graph) {
  auto lowered = Lower(graph);
  if (!lowered.ok()) return lowered.status();
  return std::move(lowered->texts);
}

absl::StatusOr<SizedKernels> KernelsWithin(const Layer& layer, int64_t batch, ir::DType dtype,
                                           const SizeLimits& limits) {
  while (true) {
    auto lowered = Lower(MakeGraph(layer, batch, dtype));
    if (!lowered.ok()) return lowered.status();
    const bool fits = lowered->points <= limits.points && lowered->elements <= limits.elements;
    if (fits || batch == 1) return SizedKernels{batch, fits, std::move(lowered->texts)};
    const double share =
        std::min(static_cast<double>(limits.points) / static_cast<double>(lowered->points),
                 static_cast<double>(limits.elements) / static_cast<double>(lowered->elements));
    const auto within = static_cast<int64_t>(static_cast<double>(batch) * share);
    // At least one less, so that this terminates: points need not decrease in proportion to the
    // batch.
    batch = std::clamp<int64_t>(within, 1, batch - 1);
  }
}

}  // namespace kiln::full_size
