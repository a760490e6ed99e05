#include "drivers/level_zero/device_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "drivers/level_zero/error.h"

namespace kiln::drivers::level_zero {
namespace {

// More than any machine has; limits what a broken library can make the daemon open.
constexpr uint32_t kDriversMax = 16;
constexpr uint32_t kDevicesMax = 64;
constexpr uint32_t kPartsMax = 32;  // queue groups, memories or caches of a device

constexpr uint32_t Version(uint32_t major, uint32_t minor) { return major << 16 | minor; }
constexpr uint32_t kSpirvVersionMin = Version(1, 2);

// The largest subgroup assumed to run in lockstep: Intel's compiler chooses 8, 16 or 32 for each
// kernel, and 16 or 32 for most.
constexpr uint32_t kSubgroupMax = 32;
// Of each hardware thread: 128 registers of 32 bytes.
constexpr int64_t kRegisterBytesPerThread = 4 << 10;

// Everything that a device reports; zeros where it reports nothing.
struct Answers {
  ze_device_properties_t device = {};
  ze_device_compute_properties_t compute = {};
  ze_device_module_properties_t module = {};
  std::vector<ze_command_queue_group_properties_t> queues;
  std::vector<ze_device_memory_properties_t> memories;
  std::vector<ze_device_cache_properties_t> caches;
};

// A list of properties; each element's structure type must be set before the call.
template <typename Properties, typename Function>
std::vector<Properties> GetAll(Function get, ze_device_handle_t device, ze_structure_type_t type) {
  uint32_t count = 0;
  if (get(device, &count, nullptr) != ZE_RESULT_SUCCESS) return {};
  count = std::min(count, kPartsMax);
  Properties empty = {};
  empty.stype = type;
  std::vector<Properties> all(count, empty);
  if (count == 0 || get(device, &count, all.data()) != ZE_RESULT_SUCCESS) return {};
  all.resize(count);
  return all;
}

Answers Ask(const Library& ze, ze_device_handle_t device) {
  Answers answers;
  answers.device.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  answers.compute.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
  answers.module.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
  if (ze.DeviceGetProperties(device, &answers.device) != ZE_RESULT_SUCCESS) answers.device = {};
  if (ze.DeviceGetComputeProperties(device, &answers.compute) != ZE_RESULT_SUCCESS)
    answers.compute = {};
  if (ze.DeviceGetModuleProperties(device, &answers.module) != ZE_RESULT_SUCCESS)
    answers.module = {};
  answers.queues =
      GetAll<ze_command_queue_group_properties_t>(ze.DeviceGetCommandQueueGroupProperties, device,
                                                  ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES);
  answers.memories = GetAll<ze_device_memory_properties_t>(
      ze.DeviceGetMemoryProperties, device, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES);
  answers.caches = GetAll<ze_device_cache_properties_t>(ze.DeviceGetCacheProperties, device,
                                                        ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES);
  return answers;
}

int AtLeastOne(uint32_t value) { return std::max(1, static_cast<int>(value)); }

int UnitsOf(const ze_device_properties_t& device) {
  return AtLeastOne(device.numSlices * device.numSubslicesPerSlice);
}

int SubgroupOf(const ze_device_compute_properties_t& compute) {
  uint32_t size = 1;
  const uint32_t count = std::min<uint32_t>(compute.numSubGroupSizes, ZE_SUBGROUPSIZE_COUNT);
  for (uint32_t i = 0; i < count; ++i) {
    if (compute.subGroupSizes[i] <= kSubgroupMax) size = std::max(size, compute.subGroupSizes[i]);
  }
  return static_cast<int>(size);
}

Limits MakeLimits(const Answers& answers) {
  const ze_device_properties_t& device = answers.device;
  const ze_device_compute_properties_t& compute = answers.compute;
  Limits limits;
  limits.vector_bytes = 4;  // lanes are threads
  limits.vector_registers = 128;
  limits.compute_units = UnitsOf(device);
  limits.threads_per_block = AtLeastOne(std::min(compute.maxTotalGroupSize, compute.maxGroupSizeX));
  limits.threads_per_subgroup = SubgroupOf(compute);
  const int64_t hardware_threads =
      int64_t{AtLeastOne(device.numEUsPerSubslice)} * AtLeastOne(device.numThreadsPerEU);
  limits.threads_per_unit = static_cast<int>(hardware_threads) * limits.threads_per_subgroup;
  limits.register_bytes_per_unit = hardware_threads * kRegisterBytesPerThread;
  limits.bytes_per_access = 16;
  limits.shared_bytes_per_block = compute.maxSharedLocalMemory;
  limits.near_memory_bytes = compute.maxSharedLocalMemory;
  size_t cache = 0;
  for (const auto& one : answers.caches) cache = std::max(cache, one.cacheSize);
  if (cache > 0) limits.private_cache_bytes = static_cast<int64_t>(cache) / limits.compute_units;
  // A thread has little private memory, and there are many threads.
  limits.local_bytes_max = 4 << 10;
  // Two arguments are the slot table and the first grid point.
  limits.arguments_max =
      std::max(1, static_cast<int>(answers.module.maxArgumentsSize / sizeof(uint64_t)) - 2);
  // Two cache lines.
  limits.buffer_alignment = 128;
  return limits;
}

// Estimates from the clocks: a multiplication and an addition per lane and cycle, two transfers per
// memory clock.
Rates MakeRates(const Answers& answers, int units) {
  const ze_device_properties_t& device = answers.device;
  const double clock = 1e6 * device.coreClockRate;
  const double lanes =
      double{1} * AtLeastOne(device.numEUsPerSubslice) * AtLeastOne(device.physicalEUSimdWidth);
  double bytes = 0;
  for (const auto& memory : answers.memories)
    bytes += 2 * 1e6 * memory.maxClockRate * memory.maxBusWidth / 8;
  return GpuRates(2 * lanes * clock * units, bytes, units);
}

Target MakeTarget(const Answers& answers) {
  const ze_device_module_properties_t& module = answers.module;
  Target target;
  target.architecture = "spirv64";
  target.processor = answers.device.name;
  if ((module.fp32flags & ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT) != 0)
    target.features = "+correctly-rounded-divide-sqrt";
  target.limits = MakeLimits(answers);
  target.capabilities.fma = (module.fp32flags & ZE_DEVICE_FP_FLAG_FMA) != 0;
  target.capabilities.fp64 = (module.flags & ZE_DEVICE_MODULE_FLAG_FP64) != 0;
  target.capabilities.fp16 = (module.flags & ZE_DEVICE_MODULE_FLAG_FP16) != 0;
  target.costs = kGpuCosts;
  target.rates = MakeRates(answers, target.limits.compute_units);
  return target;
}

// Finds the queue group for lists and a queue for copies: of a copy-only group, else another queue
// of the same group, else the same queue.
bool FindQueues(const std::vector<ze_command_queue_group_properties_t>& groups, QueuePlace* lists,
                QueuePlace* copies) {
  const auto find = [&](uint32_t flag, uint32_t without) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.numQueues > 0 && (group.flags & flag) != 0 && (group.flags & without) == 0;
    });
    return found == groups.end() ? -1 : static_cast<int>(found - groups.begin());
  };
  const int compute = find(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE, 0);
  if (compute < 0) return false;
  lists->ordinal = static_cast<uint32_t>(compute);
  const int copy =
      find(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE);
  *copies = *lists;
  if (copy >= 0) {
    copies->ordinal = static_cast<uint32_t>(copy);
  } else if (groups[compute].numQueues > 1) {
    copies->index = 1;
  }
  return true;
}

absl::Status CheckUsable(const Answers& answers, bool has_queue) {
  constexpr uint32_t kFloats =
      ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA;
  return CheckRequirements({
      {answers.device.type == ZE_DEVICE_TYPE_GPU, "is not a GPU, or does not answer"},
      {answers.module.spirvVersionSupported >= kSpirvVersionMin, "does not accept SPIR-V 1.2"},
      {(answers.module.fp32flags & kFloats) == kFloats,
       "has no infinities, no fused multiply-add, or does not round to nearest"},
      {has_queue, "has no queue that computes"},
  });
}

std::string ModelOf(const ze_device_properties_t& device) {
  const absl::string_view uuid(reinterpret_cast<const char*>(device.uuid.id),
                               sizeof(device.uuid.id));
  return absl::StrCat(device.name, " (", absl::BytesToHexString(uuid), ")");
}

// Everything that changes the binaries that the vendor's compiler makes.
std::string VersionOf(const Library& ze, ze_driver_handle_t driver, const std::string& options) {
  ze_driver_properties_t properties = {};
  properties.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES;
  ze_api_version_t api = 0;
  if (ze.DriverGetProperties(driver, &properties) != ZE_RESULT_SUCCESS) properties = {};
  if (ze.DriverGetApiVersion(driver, &api) != ZE_RESULT_SUCCESS) api = 0;
  return absl::StrCat(properties.driverVersion, ";", api >> 16, ".", api & 0xffff, ";", options);
}

DeviceFacts Query(const Library& ze, ze_driver_handle_t driver, ze_device_handle_t device) {
  const Answers answers = Ask(ze, device);
  DeviceFacts facts;
  facts.driver = driver;
  facts.device = device;
  facts.model = ModelOf(answers.device);
  facts.target = MakeTarget(answers);
  for (const auto& memory : answers.memories)
    facts.memory_bytes += static_cast<int64_t>(memory.totalSize);
  facts.allocation_bytes_max = static_cast<int64_t>(answers.device.maxMemAllocSize);
  facts.shares_host_memory = (answers.device.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0;
  facts.grid_max = answers.compute.maxGroupCountX;
  // OpenCL's name of the option; Intel's compiler has it for both APIs.
  if (facts.target.Has("correctly-rounded-divide-sqrt"))
    facts.build_options = "-cl-fp32-correctly-rounded-divide-sqrt";
  facts.target.finisher = {.driver = "level_zero",
                           .device = facts.model,
                           .version = VersionOf(ze, driver, facts.build_options)};
  facts.cycle_seconds = 1e-9 * static_cast<double>(answers.device.timerResolution);
  if (const uint32_t bits = answers.device.kernelTimestampValidBits; bits > 0 && bits < 64)
    facts.cycle_mask = (uint64_t{1} << bits) - 1;
  const bool has_queue = FindQueues(answers.queues, &facts.list_queue, &facts.copy_queue);
  facts.usable = CheckUsable(answers, has_queue);
  return facts;
}

std::vector<ze_device_handle_t> DevicesOf(const Library& ze, ze_driver_handle_t driver) {
  uint32_t count = 0;
  if (ze.DeviceGet(driver, &count, nullptr) != ZE_RESULT_SUCCESS) return {};
  count = std::min(count, kDevicesMax);
  std::vector<ze_device_handle_t> devices(count);
  if (count == 0 || ze.DeviceGet(driver, &count, devices.data()) != ZE_RESULT_SUCCESS) return {};
  devices.resize(count);
  return devices;
}

}  // namespace

absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& ze) {
  uint32_t count = 0;
  ze_result_t code = ze.DriverGet(&count, nullptr);
  count = std::min(count, kDriversMax);
  std::vector<ze_driver_handle_t> drivers(count);
  if (code == ZE_RESULT_SUCCESS && count > 0) code = ze.DriverGet(&count, drivers.data());
  if (code != ZE_RESULT_SUCCESS) return ToStatus("cannot list Level Zero's drivers", code);
  drivers.resize(count);
  std::vector<DeviceFacts> devices;
  for (ze_driver_handle_t driver : drivers) {
    for (ze_device_handle_t device : DevicesOf(ze, driver))
      devices.push_back(Query(ze, driver, device));
  }
  if (devices.empty()) {
    return absl::NotFoundError(
        "Level Zero has no device; check that kilnd may open /dev/dri/renderD* and that "
        "ZE_AFFINITY_MASK includes it");
  }
  return devices;
}

}  // namespace kiln::drivers::level_zero
