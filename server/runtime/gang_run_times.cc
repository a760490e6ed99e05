// GangRun: times of its kernels.
#include <string>
#include <vector>

#include "server/runtime/gang_run.h"

namespace kiln::runtime {

void GangRun::RecordTimes(const std::vector<double>& seconds) {
  const std::vector<std::vector<double>> calls = CallSeconds();
  Program& program = *bound_->program;
  const bool is_warm_sample = program.RecordGang(user_, seconds, calls);
  const std::string digest = program.short_digest();
  const metrics::RunLabels labels{user_, digest};
  for (int i = 0; i < gang().size(); ++i) {
    metrics::DeviceMetrics& metrics = device(i).metrics();
    metrics.RunFinished(labels, seconds[i], program.kernel_shares(i));
    if (!is_warm_sample) continue;
    const compiler::CompiledProgram& compiled = *gang().members()[i].compiled;
    for (size_t call = 0; call < calls[i].size(); ++call)
      metrics.KernelRan(labels, compiled.kernels[compiled.calls[call].kernel].image.name,
                        calls[i][call]);
  }
}

std::vector<std::vector<double>> GangRun::CallSeconds() const {
  std::vector<std::vector<double>> calls(gang().size());
  for (int i = 0; i < gang().size(); ++i) {
    // Signals and copies are between the kernels.
    const std::vector<double>& seconds = command_seconds_[i];
    if (seconds.empty()) return {};
    for (const int command : loaded_->members[i].command_of_call)
      calls[i].push_back(seconds[command]);
  }
  return calls;
}

}  // namespace kiln::runtime
