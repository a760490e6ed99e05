#include "tests/launches/launches.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "compiler/kernel/text.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/matrix_tile.h"
#include "compiler/search/stage/view.h"
#include "proto/check/check.h"

namespace kiln::launches {
namespace {

constexpr double kBlocksPerUnit = 2;
// An H100's matrix units: operations on short floats in a second; half as many on tf32.
constexpr double kMatrixFlopsPerSecond = 989e12;

// Sets the fields of contractions.
void FindContractions(const compiler::CompiledKernel& compiled, const drivers::Target& target,
                      Launch* launch) {
  ir::Context context;
  const absl::StatusOr<kernel::Kernel> kernel = kernel::ParseKernel(compiled.ir, context);
  KILN_CHECK(kernel.ok()) << kernel.status().message();
  schedule::Schedule scratch;
  const search::ScheduleWriter axes(*kernel, &scratch);
  launch->fits_matrix_units = true;
  bool any = false;
  for (size_t i = 0; i < kernel->stages.size(); ++i) {
    const search::StageView view = search::ViewStage(*kernel, static_cast<int>(i), target, axes);
    if (view.reduce.empty()) continue;
    const auto contraction =
        search::FindContraction(view.stage(), axes, view.parallel, view.reduce);
    if (!contraction || contraction->only[0].empty() || contraction->only[1].empty()) continue;
    any = true;
    for (const ir::Node* factor : contraction->factor) {
      launch->fits_matrix_units &= search::UnitDType(factor) != ir::DType::kInvalid;
    }
  }
  if (!any) return;
  for (const auto& [dtype, flops] : kernel::EstimateCost(*kernel).fused_flops) {
    launch->contraction_flops += flops;
  }
  launch->tiled = absl::StrContains(compiled.schedule, "\nstage ");
  launch->on_matrix_units = absl::StrContains(compiled.image.code, "mma.sync");
}

}  // namespace

std::string Launch::Slow() const {
  if (contraction_flops < kLargeContraction) return "";
  if (!tiled) return "NO TILES";
  return fits_matrix_units && !on_matrix_units ? "NOT ON MATRIX UNITS" : "";
}

std::vector<Launch> FindLaunches(const compiler::CompiledProgram& program,
                                 const drivers::Target& target) {
  const double enough = kBlocksPerUnit * target.limits.compute_units;
  std::vector<Launch> launches(program.kernels.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    const drivers::KernelImage& image = program.kernels[i].image;
    Launch& launch = launches[i];
    launch.kernel = static_cast<int>(i);
    FindContractions(program.kernels[i], target, &launch);
    const int64_t on_units = launch.on_matrix_units ? launch.contraction_flops : 0;
    launch.seconds =
        std::max(static_cast<double>(image.flops - on_units) / target.rates.flops_per_second +
                     static_cast<double>(on_units) / kMatrixFlopsPerSecond,
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
