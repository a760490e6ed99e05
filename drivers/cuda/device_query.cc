#include "drivers/cuda/device_query.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "drivers/cuda/error.h"

namespace kiln::drivers::cuda {
namespace {

// More than any machine has; limits what a broken library can make the daemon open.
constexpr int kDevicesMax = 64;

// Compute capabilities with PTX support, ascending, each with the PTX version that introduced it,
// or the oldest version that CUDA 12.0 surely accepts. A newer GPU runs the code of the last row.
struct Generation {
  int capability;
  int ptx;
  int lanes;  // float32 operations that a unit starts per cycle
};
constexpr Generation kGenerations[] = {
    {75, 78, 64},  {80, 78, 64},   {86, 78, 128},  {87, 78, 128},  {89, 78, 128},
    {90, 78, 128}, {100, 86, 128}, {103, 88, 128}, {120, 87, 128}, {121, 88, 128}};

const Generation& GenerationOf(int capability) {
  const Generation* after = std::upper_bound(
      std::begin(kGenerations), std::end(kGenerations), capability,
      [](int wanted, const Generation& generation) { return wanted < generation.capability; });
  return after == std::begin(kGenerations) ? *after : *(after - 1);
}

// 0 for an attribute that the device does not report.
using Attributes = std::function<int(CUdevice_attribute)>;

Attributes AttributesOf(const Library& cuda, CUdevice device) {
  return [&cuda, device](CUdevice_attribute attribute) {
    int value = 0;
    return cuda.DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
  };
}

int CapabilityOf(const Attributes& get) {
  return 10 * get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

// "GPU-" and hexadecimal digits in groups of 8-4-4-4-12.
std::string UuidText(const CUuuid& uuid) {
  const std::string digits = absl::BytesToHexString(absl::string_view(uuid.bytes, 16));
  return absl::StrCat("GPU-", digits.substr(0, 8), "-", digits.substr(8, 4), "-",
                      digits.substr(12, 4), "-", digits.substr(16, 4), "-", digits.substr(20));
}

std::string ModelOf(const Library& cuda, CUdevice device) {
  char name[256] = {};
  if (cuda.DeviceGetName(name, sizeof(name) - 1, device) != CUDA_SUCCESS) return "unknown";
  CUuuid uuid = {};
  if (cuda.DeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS) return name;
  return absl::StrCat(name, " (", UuidText(uuid), ")");
}

Limits MakeLimits(const Attributes& get) {
  Limits limits;
  limits.vector_bytes = 4;  // lanes are threads
  limits.vector_registers = 255;
  limits.compute_units = std::max(1, get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  limits.threads_per_block = std::max(1, get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  limits.threads_per_subgroup = std::max(1, get(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  limits.threads_per_shuffle = limits.threads_per_subgroup;
  limits.bytes_per_access = 16;
  limits.threads_per_unit = std::max(1, get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  const int64_t registers = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  if (registers > 0) limits.register_bytes_per_unit = 4 * registers;
  limits.shared_bytes_per_block = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  limits.near_memory_bytes = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  limits.private_cache_bytes = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) / limits.compute_units;
  // A thread has little private memory, and there are many threads.
  limits.local_bytes_max = 4 << 10;
  // A launch takes 4 KiB of parameters; two of them are the slot table and the first grid point.
  // Only CUDA 12.1 and later take more.
  limits.arguments_max = static_cast<int>((4 << 10) / sizeof(CUdeviceptr)) - 2;
  // A cache line.
  limits.buffer_alignment = 128;
  return limits;
}

// Estimates from the clocks: a multiplication and an addition per lane and cycle, two transfers per
// memory clock.
Rates MakeRates(const Attributes& get, int lanes, int units) {
  const double clock = 1e3 * get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  const double bytes = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  const double memory_clock = 1e3 * get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  return GpuRates(2 * lanes * clock * units, 2 * memory_clock * bytes, units);
}

absl::Status CheckUsable(const Attributes& get) {
  const int capability = CapabilityOf(get);
  if (capability < kGenerations[0].capability) {
    return absl::FailedPreconditionError(absl::StrCat("has compute capability ", capability / 10,
                                                      ".", capability % 10,
                                                      "; Kiln needs 7.5 or more"));
  }
  if (get(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED) {
    return absl::FailedPreconditionError(
        "is in compute mode \"prohibited\"; set another with nvidia-smi -c 0");
  }
  if (get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 0)
    return absl::FailedPreconditionError("has no unified addresses");
  return absl::OkStatus();
}

DeviceFacts Query(const Library& cuda, CUdevice device) {
  const Attributes get = AttributesOf(cuda, device);
  DeviceFacts facts;
  facts.device = device;
  facts.model = ModelOf(cuda, device);
  facts.target = MakeTarget(get);
  size_t bytes = 0;
  if (cuda.DeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS)
    facts.memory_bytes = static_cast<int64_t>(bytes);
  // A bus number of 0 is that of the board itself, and what a missing attribute looks like.
  if (const int bus = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID); bus > 0) {
    facts.pci_address = PciAddress(
        static_cast<uint32_t>(get(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)), static_cast<uint32_t>(bus),
        static_cast<uint32_t>(get(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)), 0);
  }
  facts.usable = CheckUsable(get);
  return facts;
}

}  // namespace

Target MakeTarget(const std::function<int(CUdevice_attribute)>& get) {
  const int capability = CapabilityOf(get);
  const Generation& generation = GenerationOf(capability);
  Target target;
  target.architecture = "nvptx64";
  target.processor = absl::StrCat("sm_", generation.capability);
  target.features = absl::StrCat("+ptx", generation.ptx);
  target.variant = target.processor;
  target.limits = MakeLimits(get);
  target.capabilities = {.fma = true,
                         .fp64 = true,
                         .fp16 = true,
                         .bf16 = capability >= 80,
                         .matrix = capability >= 80,
                         .async_copies = capability >= 80};
  target.costs = kGpuCosts;
  target.rates = MakeRates(get, generation.lanes, target.limits.compute_units);
  return target;
}

absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cuda) {
  int count = 0;
  const CUresult code = cuda.DeviceGetCount(&count);
  if (code != CUDA_SUCCESS) return ToStatus(cuda, "cannot count CUDA's devices", code);
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < std::min(count, kDevicesMax); ++i) {
    CUdevice device = 0;
    if (cuda.DeviceGet(&device, i) == CUDA_SUCCESS) devices.push_back(Query(cuda, device));
  }
  if (devices.empty()) {
    return absl::NotFoundError(
        "CUDA has no device; check that nvidia-smi lists one and that CUDA_VISIBLE_DEVICES "
        "includes it");
  }
  return devices;
}

}  // namespace kiln::drivers::cuda
