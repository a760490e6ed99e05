#include "server/tuner/kernels_of.h"

#include <cstddef>
#include <map>
#include <utility>

#include "proto/check/check.h"
#include "server/tuner/setting_store.h"

namespace kiln::tuner {

std::vector<KernelToTune> KernelsOf(const runtime::Program& program) {
  const std::vector<compiler::CompiledKernel>& compiled = program.compiled().kernels;
  const std::vector<runtime::KernelTimes> times = program.kernel_times();
  KILN_CHECK_EQ(compiled.size(), times.size());
  std::map<std::pair<std::string, std::string>, size_t> known;  // by hardware and text
  std::vector<KernelToTune> kernels;
  for (size_t i = 0; i < compiled.size(); ++i) {
    runtime::ManagedDevice& device = program.device_of_kernel(i);
    const auto [at, is_new] =
        known.try_emplace({device.info().target.HardwareKey(), compiled[i].ir}, kernels.size());
    if (!is_new) {
      kernels[at->second].launches += times[i].launches;
      continue;
    }
    kernels.push_back({.name = compiled[i].image.name,
                       .text = compiled[i].ir,
                       .device = &device,
                       .seconds = times[i].median_seconds,
                       .launches = times[i].launches,
                       .owner = program.description().owner});
  }
  return kernels;
}

std::string HardwareOf(const KernelToTune& kernel) {
  return StoredHardware(kernel.device->info().target.HardwareKey(), kernel.owner);
}

}  // namespace kiln::tuner
