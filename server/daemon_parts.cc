#include "server/daemon_parts.h"

#include <memory>

#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"

namespace kiln {

DaemonParts RealParts(const config::Config& config) {
  DaemonParts parts;
  if (config.cpu_devices > 0) {
    drivers::cpu::CpuOptions options;
    options.devices = config.cpu_devices;
    options.threads_per_device = config.cpu_threads;
    options.memory_limit_bytes_per_device = config.memory_limit_bytes;
    options.features = config.cpu_features;
    parts.drivers.push_back(std::make_unique<drivers::cpu::CpuDriver>(options));
  }
  parts.memory_bytes = drivers::cpu::AvailableMemory();
  parts.compile = compiler::Compile;
  parts.disassemble = compiler::Disassemble;
  parts.now = [] { return absl::Now(); };
  return parts;
}

}  // namespace kiln
