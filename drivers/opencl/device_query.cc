#include "drivers/opencl/device_query.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "drivers/opencl/context.h"

namespace kiln::drivers::opencl {
namespace {

// More than any machine has; limits what a broken library can make the daemon open.
constexpr cl_uint kPlatformsMax = 32;
constexpr cl_uint kPlatformDevicesMax = 64;

// The minimum that the standard requires.
constexpr size_t kParameterBytesMin = 1024;

// Zero or empty if the device does not report it.
template <typename T>
T Get(const Library& cl, cl_device_id id, cl_device_info what) {
  T value{};
  return cl.GetDeviceInfo(id, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

template <typename Function, typename Object>
std::string GetText(Function get, Object object, cl_uint what) {
  size_t size = 0;
  if (get(object, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (get(object, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(text.find_last_not_of('\0') + 1);
  absl::StripAsciiWhitespace(&text);
  return text;
}

Capabilities MakeCapabilities(const Library& cl, cl_device_id id, bool* rounds_correctly) {
  const std::vector<std::string> extensions =
      absl::StrSplit(GetText(cl.GetDeviceInfo, id, CL_DEVICE_EXTENSIONS), ' ');
  const auto has = [&](absl::string_view name) {
    return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
  };
  const auto float_config = Get<cl_device_fp_config>(cl, id, CL_DEVICE_SINGLE_FP_CONFIG);
  *rounds_correctly = (float_config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  Capabilities capabilities;
  capabilities.fma = (float_config & CL_FP_FMA) != 0;
  capabilities.fp64 = has("cl_khr_fp64");
  capabilities.fp16 = has("cl_khr_fp16");
  return capabilities;
}

Limits MakeLimits(const Library& cl, cl_device_id id, bool is_cpu) {
  Limits limits;
  // On a CPU, a thread's vector instructions are used; on other devices lanes are threads.
  limits.vector_bytes = is_cpu ? 16 : 4;
  limits.compute_units =
      std::max<int>(1, static_cast<int>(Get<cl_uint>(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS)));
  limits.threads_per_block =
      std::max<int>(1, static_cast<int>(Get<size_t>(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  // OpenCL reports neither before a kernel is built; version 3.0 has a hint for the subgroup size.
  limits.threads_per_subgroup = std::max<int>(
      1, static_cast<int>(Get<size_t>(cl, id, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)));
  limits.threads_per_unit = limits.threads_per_block;
  limits.shared_bytes_per_block =
      static_cast<int64_t>(Get<cl_ulong>(cl, id, CL_DEVICE_LOCAL_MEM_SIZE));
  limits.near_memory_bytes = limits.shared_bytes_per_block;
  const auto cache = Get<cl_ulong>(cl, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  if (cache > 0) limits.private_cache_bytes = static_cast<int64_t>(cache) / limits.compute_units;
  // A thread has little private memory, and there are many threads.
  limits.local_bytes_max = 4 << 10;
  const auto parameters = Get<size_t>(cl, id, CL_DEVICE_MAX_PARAMETER_SIZE);
  // Two arguments are the slot table and the first grid point.
  limits.arguments_max =
      static_cast<int>(std::max(parameters, kParameterBytesMin) / sizeof(cl_ulong)) - 2;
  limits.buffer_alignment = Context::kAlignment;
  return limits;
}

// OpenCL reports a clock, but neither a unit's lanes nor the memory's bandwidth. Most devices have
// 64 lanes; the rest is from the table. A CPU's clock does not determine its vector throughput.
Rates MakeRates(const Library& cl, cl_device_id id, int units, bool is_cpu) {
  if (is_cpu) return kVectorCoreRates;
  constexpr double kLanes = 64;
  const double clock = 1e6 * Get<cl_uint>(cl, id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  return GpuRates(2 * kLanes * clock * units, /*bytes_per_second=*/0, units);
}

Target MakeTarget(const Library& cl, cl_device_id id, bool is_cpu) {
  Target target;
  target.architecture = "opencl-c";
  target.processor = GetText(cl.GetDeviceInfo, id, CL_DEVICE_NAME);
  bool rounds_correctly = false;
  target.capabilities = MakeCapabilities(cl, id, &rounds_correctly);
  if (rounds_correctly) target.features = "+correctly-rounded-divide-sqrt";
  target.limits = MakeLimits(cl, id, is_cpu);
  target.costs = is_cpu ? kVectorCoreCosts : kGpuCosts;
  target.rates = MakeRates(cl, id, target.limits.compute_units, is_cpu);
  return target;
}

absl::Status CheckUsable(const Library& cl, cl_device_id id) {
  constexpr cl_device_fp_config kFloats = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN;
  const auto floats = Get<cl_device_fp_config>(cl, id, CL_DEVICE_SINGLE_FP_CONFIG);
  const auto svm = Get<cl_device_svm_capabilities>(cl, id, CL_DEVICE_SVM_CAPABILITIES);
  return CheckRequirements({
      {Get<cl_bool>(cl, id, CL_DEVICE_AVAILABLE) != CL_FALSE, "is not available"},
      {Get<cl_bool>(cl, id, CL_DEVICE_COMPILER_AVAILABLE) != CL_FALSE, "has no compiler"},
      {Get<cl_bool>(cl, id, CL_DEVICE_ENDIAN_LITTLE) != CL_FALSE, "is not little-endian"},
      {Get<cl_uint>(cl, id, CL_DEVICE_ADDRESS_BITS) == 64, "has no 64-bit addresses"},
      {(floats & kFloats) == kFloats, "has no infinities or does not round to nearest"},
      {(svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0, "has no shared virtual memory (OpenCL 2.0)"},
  });
}

// Intel's compiler for processors (2026.2) miscompiles some kernels with optimization: selects
// between local and global memory, and between a number and the complement of another.
bool IsMiscompiled(const DeviceFacts& facts) {
  return facts.is_cpu && absl::StrContains(facts.platform, "Intel");
}

// No option that trades accuracy for speed. -w, because warnings would hide the errors in the log.
std::string BuildOptions(const DeviceFacts& facts) {
  std::string options = "-w -cl-std=CL1.2";
  if (facts.target.Has("correctly-rounded-divide-sqrt"))
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (IsMiscompiled(facts)) options += " -cl-opt-disable";
  return options;
}

// The instruction sets of this processor. A binary for a CPU depends on them, and the CPU's name
// does not always determine them.
std::string HostInstructions() {
  std::ifstream processors("/proc/cpuinfo");
  std::string line;
  while (std::getline(processors, line)) {
    if (absl::StartsWith(line, "flags")) return line;
  }
  return "";
}

// Includes the platform, because several platforms may offer the same device.
Finisher MakeFinisher(const Library& cl, cl_platform_id platform, const DeviceFacts& facts) {
  return {
      .driver = "opencl",
      .device = absl::StrCat(facts.model, ", ", facts.platform),
      .version = absl::StrCat(GetText(cl.GetPlatformInfo, platform, CL_PLATFORM_VERSION), ";",
                              GetText(cl.GetDeviceInfo, facts.id, CL_DEVICE_VERSION), ";",
                              GetText(cl.GetDeviceInfo, facts.id, CL_DRIVER_VERSION), ";",
                              facts.build_options, ";", facts.is_cpu ? HostInstructions() : "")};
}

DeviceFacts Query(const Library& cl, cl_device_id id, cl_platform_id platform) {
  DeviceFacts facts;
  facts.id = id;
  facts.platform = GetText(cl.GetPlatformInfo, platform, CL_PLATFORM_NAME);
  facts.model = GetText(cl.GetDeviceInfo, id, CL_DEVICE_NAME);
  facts.is_cpu = (Get<cl_device_type>(cl, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  facts.target = MakeTarget(cl, id, facts.is_cpu);
  facts.memory_bytes = static_cast<int64_t>(Get<cl_ulong>(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.shares_host_memory =
      facts.is_cpu || Get<cl_bool>(cl, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != CL_FALSE;
  facts.allocation_bytes_max =
      static_cast<int64_t>(Get<cl_ulong>(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  facts.build_options = BuildOptions(facts);
  facts.target.finisher = MakeFinisher(cl, platform, facts);
  facts.model = facts.target.finisher.device;
  facts.usable = CheckUsable(cl, id);
  return facts;
}

}  // namespace

bool IsAvailable(const Library& cl, cl_device_id id) {
  return Get<cl_bool>(cl, id, CL_DEVICE_AVAILABLE) == CL_TRUE;
}

absl::StatusOr<std::vector<DeviceFacts>> QueryDevices(const Library& cl) {
  cl_platform_id platforms[kPlatformsMax];
  cl_uint num_platforms = 0;
  // Without a platform, the loader returns CL_PLATFORM_NOT_FOUND_KHR.
  if (cl.GetPlatformIDs(kPlatformsMax, platforms, &num_platforms) != CL_SUCCESS ||
      num_platforms == 0) {
    return absl::NotFoundError(
        "no OpenCL platform is installed; install the vendor's driver, or pocl-opencl-icd for the "
        "processor");
  }
  std::vector<DeviceFacts> devices;
  std::vector<std::string> names;
  for (cl_uint p = 0; p < std::min(num_platforms, kPlatformsMax); ++p) {
    names.push_back(GetText(cl.GetPlatformInfo, platforms[p], CL_PLATFORM_NAME));
    cl_device_id ids[kPlatformDevicesMax];
    cl_uint num_devices = 0;
    if (cl.GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, kPlatformDevicesMax, ids, &num_devices) !=
        CL_SUCCESS) {
      continue;  // having no device is an error, too
    }
    for (cl_uint d = 0; d < std::min(num_devices, kPlatformDevicesMax); ++d)
      devices.push_back(Query(cl, ids[d], platforms[p]));
  }
  if (devices.empty()) {
    return absl::NotFoundError(absl::StrCat("the OpenCL platforms (", absl::StrJoin(names, ", "),
                                            ") have no device; check that the vendor's driver runs "
                                            "and that kilnd may open its device"));
  }
  std::stable_partition(devices.begin(), devices.end(),
                        [](const DeviceFacts& facts) { return !facts.is_cpu; });
  return devices;
}

}  // namespace kiln::drivers::opencl
