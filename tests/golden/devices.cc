#include "tests/golden/devices.h"

#include <utility>

namespace kiln::golden {
namespace {

DescribedDevice Core(std::string name, int vector_bytes, int registers) {
  DescribedDevice device{std::move(name), false, {}};
  device.target.architecture = "x86-64";
  device.target.limits.vector_bytes = vector_bytes;
  device.target.limits.vector_registers = registers;
  device.target.limits.compute_units = 16;
  return device;
}

DescribedDevice Gpu(std::string name, std::string architecture) {
  DescribedDevice device{std::move(name), true, {}};
  device.target.architecture = std::move(architecture);
  device.target.costs = drivers::kGpuCosts;
  drivers::Limits& limits = device.target.limits;
  limits.vector_bytes = 4;
  limits.threads_per_block = 1024;
  limits.threads_per_unit = 2048;
  limits.bytes_per_access = 16;
  limits.shared_bytes_per_block = 64 << 10;
  limits.near_memory_bytes = 64 << 10;
  limits.local_bytes_max = 4 << 10;
  return device;
}

DescribedDevice H100() {
  DescribedDevice device = Gpu("h100", "nvptx64");
  device.target.capabilities.matrix = true;
  device.target.capabilities.async_copies = true;
  drivers::Limits& limits = device.target.limits;
  limits.vector_registers = 255;
  limits.compute_units = 132;
  limits.threads_per_subgroup = limits.threads_per_shuffle = 32;
  limits.shared_bytes_per_block = 48 << 10;
  limits.near_memory_bytes = 228 << 10;
  limits.private_cache_bytes = (50 << 20) / 132;
  return device;
}

DescribedDevice Mi300x() {
  DescribedDevice device = Gpu("mi300x", "amdgcn");
  drivers::Limits& limits = device.target.limits;
  limits.vector_registers = 256;
  limits.compute_units = 304;
  limits.threads_per_subgroup = limits.threads_per_shuffle = 64;
  limits.register_bytes_per_unit = 512 << 10;
  limits.private_cache_bytes = (4 << 20) / 304;
  return device;
}

DescribedDevice LevelZero() {
  DescribedDevice device = Gpu("level_zero", "spirv64");
  drivers::Limits& limits = device.target.limits;
  limits.vector_registers = 128;
  limits.compute_units = 32;
  limits.threads_per_unit = 1024;
  limits.threads_per_subgroup = 16;
  limits.private_cache_bytes = (16 << 20) / 32;
  return device;
}

}  // namespace

std::vector<DescribedDevice> DescribedDevices() {
  return {Core("lanes_4", 16, 16),
          Core("lanes_8", 32, 16),
          Core("lanes_16", 64, 32),
          H100(),
          Mi300x(),
          LevelZero()};
}

}  // namespace kiln::golden
