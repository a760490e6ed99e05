#include "drivers/vendor_drivers.h"

#include <vector>

#include "drivers/cuda/driver.h"
#include "drivers/hsa/driver.h"
#include "drivers/level_zero/driver.h"
#include "drivers/opencl/driver.h"

namespace kiln::drivers {
namespace {

std::unique_ptr<Driver> MakeCuda(const VendorDriverOptions& options) {
  return std::make_unique<cuda::CudaDriver>(cuda::CudaOptions{
      .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device, .now = options.now});
}

std::unique_ptr<Driver> MakeHsa(const VendorDriverOptions& options) {
  return std::make_unique<hsa::HsaDriver>(hsa::HsaOptions{
      .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device, .now = options.now});
}

std::unique_ptr<Driver> MakeLevelZero(const VendorDriverOptions& options) {
  return std::make_unique<level_zero::LevelZeroDriver>(level_zero::LevelZeroOptions{
      .sharing_host_memory = options.sharing_host_memory,
      .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
      .now = options.now});
}

std::unique_ptr<Driver> MakeOpenCl(const VendorDriverOptions& options) {
  return std::make_unique<opencl::OpenClDriver>(
      opencl::OpenClOptions{.sharing_host_memory = options.sharing_host_memory,
                            .memory_limit_bytes_per_device = options.memory_limit_bytes_per_device,
                            .platform = options.platform,
                            .on_broken_command_buffers = options.on_broken_command_buffers,
                            .now = options.now});
}

}  // namespace

absl::Span<const VendorDriverRow> VendorDrivers() {
  static const auto& rows = *new std::vector<VendorDriverRow>{
      {"cuda", cuda::CudaOptions().library, MakeCuda},
      {"hsa", hsa::HsaOptions().library, MakeHsa},
      {"level_zero", level_zero::LevelZeroOptions().library, MakeLevelZero},
      {"opencl", opencl::OpenClOptions().library, MakeOpenCl},
  };
  return rows;
}

std::unique_ptr<Driver> MakeVendorDriver(absl::string_view name,
                                         const VendorDriverOptions& options) {
  for (const VendorDriverRow& row : VendorDrivers()) {
    if (row.name == name) return row.make(options);
  }
  return nullptr;
}

}  // namespace kiln::drivers
