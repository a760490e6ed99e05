// State shared by all parts, the driver and its devices.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

constexpr uintptr_t kDriverHandle = uintptr_t{0x5900} << 32;

// Fills in one structure of properties, which must be marked as `type`.
template <typename Properties, typename Fill>
ze_result_t Answer(const char* call, ze_device_handle_t device, Properties* properties,
                   ze_structure_type_t type, Fill fill) {
  return Guarded(call, [&](Lock&) {
    const int number = DeviceOf(device);
    if (number < 0)
      return Mistake(std::string(call) + " of no device", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (properties == nullptr || properties->stype != type || properties->pNext != nullptr) {
      return Mistake(std::string(call) + " into a structure of another type",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    fill(number, properties);
    return ZE_RESULT_SUCCESS;
  });
}

// Level Zero's protocol for lists: returns the number, then the first elements.
template <typename Properties, typename Fill>
ze_result_t AnswerAll(const char* call, ze_device_handle_t device, uint32_t* count,
                      Properties* properties, ze_structure_type_t type, uint32_t there, Fill fill) {
  return Guarded(call, [&](Lock&) {
    if (DeviceOf(device) < 0 || count == nullptr)
      return Mistake(std::string(call) + " of no device", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (properties == nullptr || *count == 0) {
      *count = there;
      return ZE_RESULT_SUCCESS;
    }
    *count = std::min(*count, there);
    for (uint32_t i = 0; i < *count; ++i) {
      if (properties[i].stype != type || properties[i].pNext != nullptr) {
        return Mistake(std::string(call) + " into a structure of another type",
                       ZE_RESULT_ERROR_INVALID_ARGUMENT);
      }
      fill(i, &properties[i]);
    }
    return ZE_RESULT_SUCCESS;
  });
}

void FillDevice(int number, ze_device_properties_t* properties) {
  const Control& control = TheControl();
  properties->type = ZE_DEVICE_TYPE_GPU;
  properties->vendorId = 0x8086;
  properties->flags = control.integrated ? ZE_DEVICE_PROPERTY_FLAG_INTEGRATED : 0;
  properties->coreClockRate = 2000;
  properties->maxMemAllocSize = static_cast<uint64_t>(control.allocation_bytes_max.load());
  properties->numThreadsPerEU = 8;
  properties->physicalEUSimdWidth = 8;
  properties->numEUsPerSubslice = 16;
  properties->numSubslicesPerSlice = 4;
  properties->numSlices = 1;
  properties->timerResolution = kCycleNanoseconds;
  properties->timestampValidBits = properties->kernelTimestampValidBits = kTimestampBits;
  properties->uuid.id[0] = static_cast<uint8_t>(number + 1);
  std::strcpy(properties->name, "stand-in GPU");
}

void FillModules(int, ze_device_module_properties_t* properties) {
  const Control& control = TheControl();
  properties->spirvVersionSupported = 1u << 16 | static_cast<uint32_t>(control.spirv_minor.load());
  properties->flags = ZE_DEVICE_MODULE_FLAG_FP16;
  if (control.fp64) properties->flags |= ZE_DEVICE_MODULE_FLAG_FP64;
  properties->fp32flags = ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN |
                          ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA |
                          ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT;
  properties->maxArgumentsSize = kArgumentBytesMax;
}

}  // namespace

Runtime& TheRuntime() {
  static Runtime& runtime = *new Runtime;
  return runtime;
}

Control& TheControl() {
  static Control& control = *new Control;
  return control;
}

ze_result_t Mistake(const std::string& what, ze_result_t code) {
  ++TheControl().mistakes;
  TheRuntime().message = what;
  return code;
}

void Report(const std::string& message) {
  const Lock lock(TheRuntime().mutex);
  Mistake(message, ZE_RESULT_ERROR_UNKNOWN);
}

ze_result_t AnswerOfDevice(int device) {
  const Control& control = TheControl();
  return device == control.lost_device ? static_cast<ze_result_t>(control.lost.load())
                                       : ZE_RESULT_SUCCESS;
}

ze_result_t AnswerOf(Context& context, int device) {
  if (device < 0) {
    const auto* const met =
        std::find_if(std::begin(context.lost), std::end(context.lost),
                     [](ze_result_t code) { return code != ZE_RESULT_SUCCESS; });
    return met == std::end(context.lost) ? ZE_RESULT_SUCCESS : *met;
  }
  ze_result_t& lost = context.lost[device];
  if (lost == ZE_RESULT_SUCCESS) lost = AnswerOfDevice(device);
  return lost;
}

ze_driver_handle_t TheDriver() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle that is no address.
  return reinterpret_cast<ze_driver_handle_t>(kDriverHandle);
}

ze_device_handle_t HandleOf(int device) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<ze_device_handle_t>(kDriverHandle + 16 * (1 + device));
}

int DeviceOf(ze_device_handle_t device) {
  for (int i = 0; i < std::min<int>(TheControl().devices, kDevicesMax); ++i) {
    if (HandleOf(i) == device) return i;
  }
  return -1;
}

extern "C" {

ze_result_t zeInit(uint32_t flags) {
  Runtime& runtime = TheRuntime();
  const Lock lock(runtime.mutex);
  if (const int code = TheControl().init_fails; code != 0) return static_cast<ze_result_t>(code);
  if ((flags & ~ZE_INIT_FLAG_GPU_ONLY) != 0)
    return Mistake("zeInit with unknown flags", ZE_RESULT_ERROR_INVALID_ENUMERATION);
  if (!TheControl().host_kernels && runtime.opencl == nullptr) {
    runtime.opencl = stand_ins::level_zero::FindOpenClRuntime(&runtime.message);
    if (runtime.opencl == nullptr) return ZE_RESULT_ERROR_UNINITIALIZED;
  }
  runtime.initialized = true;
  return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGet(uint32_t* count, ze_driver_handle_t* drivers) {
  return Guarded("zeDriverGet", [&](Lock&) {
    if (drivers != nullptr && *count > 0) drivers[0] = TheDriver();
    *count = 1;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeDriverGetApiVersion(ze_driver_handle_t driver, ze_api_version_t* version) {
  return Guarded("zeDriverGetApiVersion", [&](Lock&) {
    if (driver != TheDriver())
      return Mistake("zeDriverGetApiVersion of no driver", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    *version = 1 << 16 | 4;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeDriverGetProperties(ze_driver_handle_t driver, ze_driver_properties_t* properties) {
  return Guarded("zeDriverGetProperties", [&](Lock&) {
    if (driver != TheDriver() || properties->stype != ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES) {
      return Mistake("zeDriverGetProperties of no driver, or into another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    properties->driverVersion = static_cast<uint32_t>(TheControl().driver_version.load());
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t* count, ze_device_handle_t* devices) {
  return Guarded("zeDeviceGet", [&](Lock&) {
    if (driver != TheDriver())
      return Mistake("zeDeviceGet of no driver", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    const auto there = static_cast<uint32_t>(std::min<int>(TheControl().devices, kDevicesMax));
    const uint32_t wanted = devices == nullptr ? 0 : std::min(*count, there);
    for (uint32_t i = 0; i < wanted; ++i) devices[i] = HandleOf(static_cast<int>(i));
    *count = wanted == 0 ? there : wanted;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t* properties) {
  return Answer("zeDeviceGetProperties", device, properties, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
                FillDevice);
}

ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t device,
                                         ze_device_compute_properties_t* properties) {
  return Answer("zeDeviceGetComputeProperties", device, properties,
                ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES,
                [](int, ze_device_compute_properties_t* of) {
                  of->maxTotalGroupSize = of->maxGroupSizeX = kThreadsPerBlockMax;
                  of->maxGroupSizeY = of->maxGroupSizeZ = kThreadsPerBlockMax;
                  of->maxGroupCountX = of->maxGroupCountY = of->maxGroupCountZ = kGroupsMax;
                  of->maxSharedLocalMemory = kSharedBytesMax;
                  of->numSubGroupSizes = 3;
                  of->subGroupSizes[0] = 8;
                  of->subGroupSizes[1] = 16;
                  of->subGroupSizes[2] = 32;
                });
}

ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t device,
                                        ze_device_module_properties_t* properties) {
  return Answer("zeDeviceGetModuleProperties", device, properties,
                ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, FillModules);
}

ze_result_t zeDeviceGetCommandQueueGroupProperties(
    ze_device_handle_t device, uint32_t* count, ze_command_queue_group_properties_t* properties) {
  return AnswerAll("zeDeviceGetCommandQueueGroupProperties", device, count, properties,
                   ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
                   TheControl().copy_queues ? 2 : 1,
                   [](uint32_t i, ze_command_queue_group_properties_t* of) {
                     of->flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
                     if (i == kComputeOrdinal)
                       of->flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
                     of->maxMemoryFillPatternSize = i == kComputeOrdinal ? 16 : 1;
                     of->numQueues = 1;
                   });
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t* count,
                                        ze_device_memory_properties_t* properties) {
  return AnswerAll("zeDeviceGetMemoryProperties", device, count, properties,
                   ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES, 1,
                   [](uint32_t, ze_device_memory_properties_t* of) {
                     of->maxClockRate = 1000;
                     of->maxBusWidth = 256;
                     of->totalSize = static_cast<uint64_t>(TheControl().memory_bytes.load());
                   });
}

ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t device, uint32_t* count,
                                       ze_device_cache_properties_t* properties) {
  return AnswerAll("zeDeviceGetCacheProperties", device, count, properties,
                   ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES, 1,
                   [](uint32_t, ze_device_cache_properties_t* of) { of->cacheSize = 8 << 20; });
}

ze_result_t zeDeviceGetStatus(ze_device_handle_t device) {
  return Guarded("zeDeviceGetStatus", [&](Lock&) {
    const int number = DeviceOf(device);
    if (number < 0)
      return Mistake("zeDeviceGetStatus of no device", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    return AnswerOfDevice(number);
  });
}

ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t* desc,
                            ze_context_handle_t* context) {
  return Guarded("zeContextCreate", [&](Lock&) {
    if (driver != TheDriver() || desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_CONTEXT_DESC) {
      return Mistake("zeContextCreate with no driver or another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    *context = TheRuntime().contexts.Add(std::make_shared<Context>());
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeContextDestroy(ze_context_handle_t context) {
  return Guarded("zeContextDestroy", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    if (found == nullptr)
      return Mistake("zeContextDestroy of no context", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    // The table's reference and this one; any live object of the context holds another.
    if (found.use_count() > 2)
      return Mistake("zeContextDestroy of a context with objects",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    TheRuntime().contexts.Remove(context);
    return ZE_RESULT_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero

extern "C" kiln::stand_ins::level_zero::Control* KilnLevelZeroStandInControl() {
  return &kiln::drivers::level_zero::TheControl();
}

extern "C" const char* KilnLevelZeroStandInMessage() {
  static thread_local std::string message;
  kiln::drivers::level_zero::Runtime& runtime = kiln::drivers::level_zero::TheRuntime();
  const std::lock_guard<std::mutex> lock(runtime.mutex);
  message = runtime.message;
  return message.c_str();
}
