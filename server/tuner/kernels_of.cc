#include "server/tuner/kernels_of.h"

#include <cstddef>
#include <map>
#include <utility>

#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"
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

double SizeOf(const KernelToTune& kernel) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel.text, context);
  if (!parsed.ok()) return 0;
  const kernel::Cost cost = kernel::EstimateCost(*parsed);
  return static_cast<double>(cost.flops) + static_cast<double>(cost.bytes);
}

std::optional<GraphToTune> GraphOf(const runtime::Program& program) {
  const compiler::CompiledProgram& compiled = program.compiled();
  const bool is_alone = program.sharded().members().size() == 1 && compiled.choices.size() == 1 &&
                        compiled.groups.empty();
  if (!is_alone || compiled.choices[0].key.empty()) return std::nullopt;
  return GraphToTune{.graph = compiled.graph_text,
                     .key = compiled.choices[0].key,
                     .choices = compiled.choices[0].text,
                     .device = &program.device(),
                     .owner = program.description().owner};
}

std::vector<KernelToTune> KernelsOf(const compiler::CompiledProgram& program,
                                    const GraphToTune& graph,
                                    const std::vector<KernelToTune>& known) {
  std::map<std::string, double> times;
  double seconds = 0, size = 0;
  for (const KernelToTune& kernel : known) {
    times[kernel.text] = kernel.seconds;
    if (kernel.seconds <= 0) continue;
    seconds += kernel.seconds;
    size += SizeOf(kernel);
  }
  std::vector<KernelToTune> kernels;
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    KernelToTune& one = kernels.emplace_back(KernelToTune{.name = kernel.image.name,
                                                          .text = kernel.ir,
                                                          .device = graph.device,
                                                          .launches = 0,
                                                          .owner = graph.owner});
    const auto found = times.find(kernel.ir);
    if (found != times.end()) {
      one.seconds = found->second;
    } else if (size > 0) {
      one.seconds = SizeOf(one) * seconds / size;
    }
  }
  for (const compiler::KernelCall& call : program.calls)
    ++kernels[static_cast<size_t>(call.kernel)].launches;
  return kernels;
}

std::string HardwareOf(const KernelToTune& kernel) {
  return StoredHardware(kernel.device->info().target.HardwareKey(), kernel.owner);
}

}  // namespace kiln::tuner
