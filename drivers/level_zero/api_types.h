// The types and constants of Level Zero's core API that Kiln uses, from version 1.0 on. Values and
// layouts are the binary interface of the library, and the names are Level Zero's.
#ifndef KILN_DRIVERS_LEVEL_ZERO_API_TYPES_H_
#define KILN_DRIVERS_LEVEL_ZERO_API_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace kiln::drivers::level_zero {

// NOLINTBEGIN(readability-identifier-naming)

// Handles are opaque.
typedef struct ze_driver_st* ze_driver_handle_t;
typedef struct ze_device_st* ze_device_handle_t;
typedef struct ze_context_st* ze_context_handle_t;
typedef struct ze_command_queue_st* ze_command_queue_handle_t;
typedef struct ze_command_list_st* ze_command_list_handle_t;
typedef struct ze_fence_st* ze_fence_handle_t;
typedef struct ze_event_pool_st* ze_event_pool_handle_t;
typedef struct ze_event_st* ze_event_handle_t;
typedef struct ze_module_st* ze_module_handle_t;
typedef struct ze_module_build_log_st* ze_module_build_log_handle_t;
typedef struct ze_kernel_st* ze_kernel_handle_t;

typedef uint32_t ze_api_version_t;  // major << 16 | minor

enum ze_result_t : uint32_t {
  ZE_RESULT_SUCCESS = 0,
  ZE_RESULT_NOT_READY = 1,
  ZE_RESULT_ERROR_DEVICE_LOST = 0x70000001,
  ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY = 0x70000002,
  ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY = 0x70000003,
  ZE_RESULT_ERROR_MODULE_BUILD_FAILURE = 0x70000004,
  ZE_RESULT_ERROR_MODULE_LINK_FAILURE = 0x70000005,
  ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET = 0x70000006,
  ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE = 0x70000007,
  ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS = 0x70010000,
  ZE_RESULT_ERROR_NOT_AVAILABLE = 0x70010001,
  ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE = 0x70020000,
  ZE_RESULT_ERROR_UNINITIALIZED = 0x78000001,
  ZE_RESULT_ERROR_UNSUPPORTED_VERSION = 0x78000002,
  ZE_RESULT_ERROR_UNSUPPORTED_FEATURE = 0x78000003,
  ZE_RESULT_ERROR_INVALID_ARGUMENT = 0x78000004,
  ZE_RESULT_ERROR_INVALID_NULL_HANDLE = 0x78000005,
  ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE = 0x78000006,
  ZE_RESULT_ERROR_INVALID_NULL_POINTER = 0x78000007,
  ZE_RESULT_ERROR_INVALID_SIZE = 0x78000008,
  ZE_RESULT_ERROR_UNSUPPORTED_SIZE = 0x78000009,
  ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT = 0x7800000a,
  ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT = 0x7800000b,
  ZE_RESULT_ERROR_INVALID_ENUMERATION = 0x7800000c,
  ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION = 0x7800000d,
  ZE_RESULT_ERROR_INVALID_NATIVE_BINARY = 0x7800000f,
  ZE_RESULT_ERROR_INVALID_KERNEL_NAME = 0x78000011,
  ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION = 0x78000013,
  ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION = 0x78000014,
  ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX = 0x78000015,
  ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE = 0x78000016,
  ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE = 0x78000017,
  ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED = 0x78000018,
  ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE = 0x78000019,
  ZE_RESULT_ERROR_OVERLAPPING_REGIONS = 0x7800001a,
  ZE_RESULT_ERROR_UNKNOWN = 0x7ffffffe,
};

// The first field of each structure.
enum ze_structure_type_t : uint32_t {
  ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES = 0x1,
  ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES = 0x3,
  ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES = 0x4,
  ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES = 0x5,
  ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES = 0x6,
  ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES = 0x7,
  ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES = 0x9,
  ZE_STRUCTURE_TYPE_CONTEXT_DESC = 0xd,
  ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC = 0xe,
  ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC = 0xf,
  ZE_STRUCTURE_TYPE_EVENT_POOL_DESC = 0x10,
  ZE_STRUCTURE_TYPE_EVENT_DESC = 0x11,
  ZE_STRUCTURE_TYPE_FENCE_DESC = 0x12,
  ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC = 0x15,
  ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC = 0x16,
  ZE_STRUCTURE_TYPE_MODULE_DESC = 0x1b,
  ZE_STRUCTURE_TYPE_KERNEL_DESC = 0x1d,
  ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES = 0x1e,
};

// Flags, combined with |.
constexpr uint32_t ZE_INIT_FLAG_GPU_ONLY = 1 << 0;
constexpr uint32_t ZE_DEVICE_PROPERTY_FLAG_INTEGRATED = 1 << 0;
constexpr uint32_t ZE_DEVICE_MODULE_FLAG_FP16 = 1 << 0;
constexpr uint32_t ZE_DEVICE_MODULE_FLAG_FP64 = 1 << 1;
constexpr uint32_t ZE_DEVICE_FP_FLAG_DENORM = 1 << 0;
constexpr uint32_t ZE_DEVICE_FP_FLAG_INF_NAN = 1 << 1;
constexpr uint32_t ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST = 1 << 2;
constexpr uint32_t ZE_DEVICE_FP_FLAG_FMA = 1 << 5;
constexpr uint32_t ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT = 1 << 6;
constexpr uint32_t ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE = 1 << 0;
constexpr uint32_t ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY = 1 << 1;
constexpr uint32_t ZE_EVENT_POOL_FLAG_HOST_VISIBLE = 1 << 0;
constexpr uint32_t ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP = 1 << 2;
constexpr uint32_t ZE_EVENT_SCOPE_FLAG_HOST = 1 << 2;
constexpr uint32_t ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE = 1 << 1;

enum ze_device_type_t : uint32_t { ZE_DEVICE_TYPE_GPU = 1 };
enum ze_module_format_t : uint32_t { ZE_MODULE_FORMAT_IL_SPIRV = 0, ZE_MODULE_FORMAT_NATIVE = 1 };
enum ze_command_queue_mode_t : uint32_t {
  ZE_COMMAND_QUEUE_MODE_DEFAULT = 0,
  ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1,
  ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2,
};
enum ze_command_queue_priority_t : uint32_t { ZE_COMMAND_QUEUE_PRIORITY_NORMAL = 0 };

constexpr int ZE_MAX_DEVICE_NAME = 256;
constexpr int ZE_SUBGROUPSIZE_COUNT = 8;

struct ze_uuid_t {
  uint8_t id[16];
};

struct ze_driver_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  ze_uuid_t uuid;
  uint32_t driverVersion;
};

struct ze_device_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  ze_device_type_t type;
  uint32_t vendorId;
  uint32_t deviceId;
  uint32_t flags;
  uint32_t subdeviceId;
  uint32_t coreClockRate;  // MHz
  uint64_t maxMemAllocSize;
  uint32_t maxHardwareContexts;
  uint32_t maxCommandQueuePriority;
  uint32_t numThreadsPerEU;
  uint32_t physicalEUSimdWidth;
  uint32_t numEUsPerSubslice;
  uint32_t numSubslicesPerSlice;
  uint32_t numSlices;
  uint64_t timerResolution;  // nanoseconds per cycle
  uint32_t timestampValidBits;
  uint32_t kernelTimestampValidBits;
  ze_uuid_t uuid;
  char name[ZE_MAX_DEVICE_NAME];
};

struct ze_device_compute_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t maxTotalGroupSize;
  uint32_t maxGroupSizeX;
  uint32_t maxGroupSizeY;
  uint32_t maxGroupSizeZ;
  uint32_t maxGroupCountX;
  uint32_t maxGroupCountY;
  uint32_t maxGroupCountZ;
  uint32_t maxSharedLocalMemory;
  uint32_t numSubGroupSizes;
  uint32_t subGroupSizes[ZE_SUBGROUPSIZE_COUNT];
};

struct ze_device_module_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t spirvVersionSupported;  // major << 16 | minor
  uint32_t flags;
  uint32_t fp16flags;
  uint32_t fp32flags;
  uint32_t fp64flags;
  uint32_t maxArgumentsSize;
  uint32_t printfBufferSize;
  ze_uuid_t nativeKernelSupported;
};

struct ze_command_queue_group_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t flags;
  size_t maxMemoryFillPatternSize;
  uint32_t numQueues;
};

struct ze_device_memory_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t flags;
  uint32_t maxClockRate;  // MHz
  uint32_t maxBusWidth;   // bits
  uint64_t totalSize;
  char name[ZE_MAX_DEVICE_NAME];
};

struct ze_device_cache_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t flags;
  size_t cacheSize;
};

struct ze_context_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
};

struct ze_command_queue_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t ordinal;
  uint32_t index;
  uint32_t flags;
  ze_command_queue_mode_t mode;
  ze_command_queue_priority_t priority;
};

struct ze_command_list_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t commandQueueGroupOrdinal;
  uint32_t flags;
};

struct ze_event_pool_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
  uint32_t count;
};

struct ze_event_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t index;
  uint32_t signal;
  uint32_t wait;
};

struct ze_fence_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
};

struct ze_device_mem_alloc_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
  uint32_t ordinal;
};

struct ze_host_mem_alloc_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
};

struct ze_module_constants_t {
  uint32_t numConstants;
  const uint32_t* pConstantIds;
  const void** pConstantValues;
};

struct ze_module_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  ze_module_format_t format;
  size_t inputSize;
  const uint8_t* pInputModule;
  const char* pBuildFlags;
  const ze_module_constants_t* pConstants;
};

struct ze_kernel_desc_t {
  ze_structure_type_t stype;
  const void* pNext;
  uint32_t flags;
  const char* pKernelName;
};

struct ze_kernel_properties_t {
  ze_structure_type_t stype;
  void* pNext;
  uint32_t numKernelArgs;
  uint32_t requiredGroupSizeX;
  uint32_t requiredGroupSizeY;
  uint32_t requiredGroupSizeZ;
  uint32_t requiredNumSubGroups;
  uint32_t requiredSubgroupSize;
  uint32_t maxSubgroupSize;
  uint32_t maxNumSubgroups;
  uint32_t localMemSize;
  uint32_t privateMemSize;
  uint32_t spillMemSize;
  uint8_t uuid[32];
};

struct ze_group_count_t {
  uint32_t groupCountX;
  uint32_t groupCountY;
  uint32_t groupCountZ;
};

struct ze_kernel_timestamp_data_t {
  uint64_t kernelStart;
  uint64_t kernelEnd;
};
struct ze_kernel_timestamp_result_t {
  ze_kernel_timestamp_data_t global;
  ze_kernel_timestamp_data_t context;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_API_TYPES_H_
