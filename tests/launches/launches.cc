#include "tests/launches/launches.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace kiln::launches {
namespace {

constexpr double kBlocksPerUnit = 2;

}  // namespace

std::vector<Launch> FindLaunches(const compiler::CompiledProgram& program,
                                 const drivers::Target& target) {
  const double enough = kBlocksPerUnit * target.limits.compute_units;
  std::vector<Launch> launches(program.kernels.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    const drivers::KernelImage& image = program.kernels[i].image;
    Launch& launch = launches[i];
    launch.kernel = static_cast<int>(i);
    launch.seconds = std::max(static_cast<double>(image.flops) / target.rates.flops_per_second,
                              static_cast<double>(image.bytes) / target.rates.bytes_per_second);
    launch.blocks = image.grid_size;
    launch.launched_seconds =
        launch.seconds * std::max(1.0, enough / static_cast<double>(launch.blocks)) +
        target.rates.launch_seconds;
    launch.threads = image.grid_size * image.block_size;
    launch.large = launch.seconds >= kLargeSeconds;
    launch.scatters = absl::c_linear_search(image.access, drivers::Access::kReadWrite);
    launch.wide = !launch.large || launch.scatters || static_cast<double>(launch.blocks) >= enough;
  }
  for (const compiler::KernelCall& call : program.calls) ++launches[call.kernel].calls;
  std::stable_sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return a.launched_seconds * a.calls > b.launched_seconds * b.calls;
  });
  return launches;
}

}  // namespace kiln::launches
