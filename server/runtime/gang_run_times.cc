// GangRun: what its kernels took.
#include <algorithm>
#include <string>
#include <vector>

#include "server/runtime/gang_run.h"

namespace kiln::runtime {

void GangRun::RecordTimes(const std::vector<double>& seconds) {
  const std::vector<double> kernels = KernelSeconds();
  Program& program = *bound_->program;
  // Fair shares are counted on each device; a run is as long as it was on the slowest.
  program.Record(user_, *std::max_element(seconds.begin(), seconds.end()), kernels);
  const std::string digest = program.short_digest();
  const metrics::RunLabels labels{user_, digest};
  for (int i = 0; i < gang().size(); ++i) device(i).metrics().RunFinished(labels, seconds[i]);
  const auto& compiled = program.compiled();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int kernel = compiled.calls[i].kernel;
    program.device_of_kernel(kernel).metrics().KernelRan(
        labels, compiled.kernels[kernel].image.name, kernels[i]);
  }
}

std::vector<double> GangRun::KernelSeconds() const {
  std::vector<double> kernels;
  for (const int member : gang().distinct()) {
    // Signals and copies stand between the kernels.
    const std::vector<double>& seconds = command_seconds_[member];
    if (seconds.empty()) return {};
    for (const int command : loaded_->members[member].command_of_call)
      kernels.push_back(seconds[command]);
  }
  return kernels;
}

bool GangRun::IsTimed(int member) const {
  const std::vector<int> distinct = gang().distinct();
  return std::find(distinct.begin(), distinct.end(), member) != distinct.end();
}

}  // namespace kiln::runtime
