// The list of drivers. A new driver adds a row.
#include <functional>
#include <utility>

#include "drivers/common/dynamic_library.h"
#include "drivers/cpu/driver.h"
#include "drivers/cuda/driver.h"
#include "drivers/hsa/driver.h"
#include "drivers/level_zero/driver.h"
#include "drivers/null/driver.h"
#include "drivers/opencl/driver.h"
#include "tests/conformance/driver_case.h"
#include "tests/opencl_platform.h"
#include "tests/stand_ins/cuda/control.h"
#include "tests/stand_ins/hsa/control.h"
#include "tests/stand_ins/level_zero/control.h"

namespace kiln::conformance {
namespace {

// Small enough that the suite can exhaust it.
constexpr int64_t kMemory = int64_t{64} << 20;

// Lets a stand-in have two devices. `control`: the symbol of what controls it.
template <typename Control>
void MakeTwoDevices(const std::string& library, const std::string& control) {
  const auto opened = drivers::DynamicLibrary::Open(library);
  Control* (*find)() = nullptr;
  if (opened.ok() && (*opened)->Find(control, &find).ok()) find()->devices = 2;
}

std::unique_ptr<drivers::Driver> MakeNull() {
  return std::make_unique<drivers::null::NullDriver>(
      drivers::null::NullOptions{.devices = 2, .memory_bytes_per_device = kMemory});
}

// `cores`: the number of cores that the devices are told; 0: this machine's.
std::unique_ptr<drivers::Driver> MakeCpu(int devices, int threads, const char* features = "",
                                         int cores = 0) {
  std::function<int()> count_cores = nullptr;
  if (cores > 0) count_cores = [cores] { return cores; };
  return std::make_unique<drivers::cpu::CpuDriver>(
      drivers::cpu::CpuOptions{.devices = devices,
                               .threads_per_device = threads,
                               .memory_limit_bytes_per_device = kMemory,
                               .features = features,
                               .cores = std::move(count_cores)});
}

// The OpenCL devices of this machine, including the processor: in CI that is PoCL, also under
// ThreadSanitizer.
std::unique_ptr<drivers::Driver> MakeOpenCl(drivers::opencl::CommandBuffers command_buffers) {
  return std::make_unique<drivers::opencl::OpenClDriver>(
      drivers::opencl::OpenClOptions{.sharing_host_memory = true,
                                     .memory_limit_bytes_per_device = kMemory,
                                     .platform = OpenClPlatformToTest(),
                                     .command_buffers = command_buffers});
}

std::unique_ptr<drivers::Driver> MakeOpenClStandIn() {
  return std::make_unique<drivers::opencl::OpenClDriver>(
      drivers::opencl::OpenClOptions{.sharing_host_memory = true,
                                     .memory_limit_bytes_per_device = kMemory,
                                     .library = KILN_OPENCL_STAND_IN});
}

// The CUDA devices of this machine.
std::unique_ptr<drivers::Driver> MakeCuda() {
  return std::make_unique<drivers::cuda::CudaDriver>(
      drivers::cuda::CudaOptions{.memory_limit_bytes_per_device = kMemory});
}

// Two devices that can access each other's memory.
std::unique_ptr<drivers::Driver> MakeCudaStandIn() {
  MakeTwoDevices<stand_ins::cuda::Control>(KILN_CUDA_STAND_IN, "KilnCudaStandInControl");
  return std::make_unique<drivers::cuda::CudaDriver>(drivers::cuda::CudaOptions{
      .memory_limit_bytes_per_device = kMemory, .library = KILN_CUDA_STAND_IN});
}

// The HSA devices of this machine.
std::unique_ptr<drivers::Driver> MakeHsa() {
  return std::make_unique<drivers::hsa::HsaDriver>(
      drivers::hsa::HsaOptions{.memory_limit_bytes_per_device = kMemory});
}

// Two devices that can access each other's memory.
std::unique_ptr<drivers::Driver> MakeHsaStandIn() {
  MakeTwoDevices<stand_ins::hsa::Control>(KILN_HSA_STAND_IN, "KilnHsaStandInControl");
  return std::make_unique<drivers::hsa::HsaDriver>(drivers::hsa::HsaOptions{
      .memory_limit_bytes_per_device = kMemory, .library = KILN_HSA_STAND_IN});
}

// The Level Zero devices of this machine.
std::unique_ptr<drivers::Driver> MakeLevelZero() {
  return std::make_unique<drivers::level_zero::LevelZeroDriver>(
      drivers::level_zero::LevelZeroOptions{.sharing_host_memory = true,
                                            .memory_limit_bytes_per_device = kMemory});
}

// Two devices. Kernels run on an OpenCL that accepts SPIR-V; without one there is no device.
std::unique_ptr<drivers::Driver> MakeLevelZeroStandIn() {
  MakeTwoDevices<stand_ins::level_zero::Control>(KILN_LEVEL_ZERO_STAND_IN,
                                                 "KilnLevelZeroStandInControl");
  return std::make_unique<drivers::level_zero::LevelZeroDriver>(
      drivers::level_zero::LevelZeroOptions{.memory_limit_bytes_per_device = kMemory,
                                            .library = KILN_LEVEL_ZERO_STAND_IN});
}

constexpr char kNoBlocks[] = "a grid point is one call of a function";
constexpr char kOneOpenCl[] = "most machines have one";
constexpr char kContextsApart[] =
    "each device has a context of its own, and lists take its buffers alone";

}  // namespace

const char* Name(Feature feature) {
  switch (feature) {
    case Feature::kKernels:
      return "kernels";
    case Feature::kBlocks:
      return "blocks";
    case Feature::kTwoDevices:
      return "two devices";
    case Feature::kPeers:
      return "devices that reach each other";
    case Feature::kMemoryLimit:
      return "memory limit";
  }
  return "unknown";
}

std::string DriverCase::WhyNot(Feature feature) const {
  for (const Unsupported& row : unsupported) {
    if (row.feature == feature) return row.reason;
    if (row.feature == Feature::kTwoDevices && feature == Feature::kPeers) return row.reason;
  }
  return "";
}

std::vector<DriverCase> AllDriverCases() {
  return {
      {.name = "null",
       .make = MakeNull,
       .kernels = nullptr,
       .unsupported = {{Feature::kKernels, "kernels of the null architecture do nothing"},
                       {Feature::kBlocks, "kernels of the null architecture do nothing"}}},
      {.name = "cpu_one_thread",
       .make = [] { return MakeCpu(1, 1); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"},
                       {Feature::kBlocks, kNoBlocks}}},
      {.name = "cpu_four_threads",
       .make = [] { return MakeCpu(1, 4); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"},
                       {Feature::kBlocks, kNoBlocks}}},
      {.name = "cpu_four_lanes",
       .make = [] { return MakeCpu(1, 2, "sse4.2"); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kTwoDevices,
                        "configured with one device; cpu_two_devices has two"},
                       {Feature::kBlocks, kNoBlocks}}},
      {.name = "cpu_two_devices",
       .make = [] { return MakeCpu(2, 2); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kBlocks, kNoBlocks}}},
      {.name = "cpu_three_devices_on_one_core",
       .make = [] { return MakeCpu(3, 1, "", 1); },
       .kernels = MakeX86Kernels,
       .unsupported = {{Feature::kBlocks, kNoBlocks}}},
      {.name = "cuda",
       .make = MakeCuda,
       .kernels = MakePtxKernels,
       .unsupported = {{Feature::kTwoDevices, "most machines have one; cuda_stand_in has two"}}},
      {.name = "cuda_stand_in",
       .make = MakeCudaStandIn,
       .kernels = MakePtxKernels,
       .unsupported = {}},
      {.name = "hsa",
       .make = MakeHsa,
       .kernels = MakeAmdgcnKernels,
       .unsupported = {{Feature::kTwoDevices, "most machines have one; hsa_stand_in has two"}}},
      {.name = "hsa_stand_in",
       .make = MakeHsaStandIn,
       .kernels = MakeAmdgcnKernels,
       .unsupported = {}},
      {.name = "level_zero",
       .make = MakeLevelZero,
       .kernels = MakeSpirvKernels,
       .unsupported = {{Feature::kTwoDevices,
                        "most machines have one; level_zero_stand_in has two"},
                       {Feature::kPeers, kContextsApart}}},
      {.name = "level_zero_stand_in",
       .make = MakeLevelZeroStandIn,
       .kernels = MakeSpirvKernels,
       .unsupported = {{Feature::kPeers, kContextsApart}}},
      {.name = "level_zero_stand_in_finished",
       .make = MakeLevelZeroStandIn,
       .kernels = MakeSpirvKernels,
       .unsupported = {{Feature::kPeers, kContextsApart}},
       .finishes = true},
      {.name = "opencl",
       .make = [] { return MakeOpenCl(drivers::opencl::CommandBuffers::kNever); },
       .kernels = MakeOpenClKernels,
       .unsupported = {{Feature::kTwoDevices, kOneOpenCl}}},
      {.name = "opencl_command_buffers",
       .make = [] { return MakeOpenCl(drivers::opencl::CommandBuffers::kAlways); },
       .kernels = MakeOpenClKernels,
       .unsupported = {{Feature::kTwoDevices, kOneOpenCl}}},
      {.name = "opencl_finished",
       .make = [] { return MakeOpenCl(drivers::opencl::CommandBuffers::kNever); },
       .kernels = MakeOpenClKernels,
       .unsupported = {{Feature::kTwoDevices, kOneOpenCl}},
       .finishes = true},
      {.name = "opencl_stand_in",
       .make = MakeOpenClStandIn,
       .kernels = nullptr,
       .unsupported = {{Feature::kTwoDevices, kOneOpenCl},
                       {Feature::kKernels, "the stand-in for the library compiles nothing"},
                       {Feature::kBlocks, "the stand-in for the library compiles nothing"}}},
  };
}

}  // namespace kiln::conformance
