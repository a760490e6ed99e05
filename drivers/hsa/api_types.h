// The types and constants of the HSA runtime's API that Kiln uses, from its specification 1.2 and
// AMD's extensions (libhsa-runtime64.so.1 of ROCm 5.4 or newer). Declared here, so that building
// Kiln needs no ROCm header.
#ifndef KILN_DRIVERS_HSA_API_TYPES_H_
#define KILN_DRIVERS_HSA_API_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace kiln::drivers::hsa {

// NOLINTBEGIN(readability-identifier-naming)

enum hsa_status_t : int {
  HSA_STATUS_SUCCESS = 0x0,
  HSA_STATUS_INFO_BREAK = 0x1,
  HSA_STATUS_ERROR = 0x1000,
  HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
  HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002,
  HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
  HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
  HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006,
  HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007,
  HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
  HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009,
  HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B,
  HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D,
  HSA_STATUS_ERROR_INVALID_ISA = 0x100F,
  HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010,
  HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011,
  HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012,
  HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013,
  HSA_STATUS_ERROR_EXCEPTION = 0x1016,
  HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019,
  HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021,
  HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40,
  HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41,
  HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42,
  HSA_STATUS_ERROR_MEMORY_FAULT = 43,
};

// Handles; 0 means none.
struct hsa_agent_t {
  uint64_t handle;
};
struct hsa_isa_t {
  uint64_t handle;
};
struct hsa_signal_t {
  uint64_t handle;
};
struct hsa_amd_memory_pool_t {
  uint64_t handle;
};
struct hsa_code_object_reader_t {
  uint64_t handle;
};
struct hsa_executable_t {
  uint64_t handle;
};
struct hsa_loaded_code_object_t {
  uint64_t handle;
};
struct hsa_executable_symbol_t {
  uint64_t handle;
};
using hsa_signal_value_t = int64_t;

enum hsa_system_info_t : int { HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3 };

enum hsa_device_type_t : int { HSA_DEVICE_TYPE_CPU = 0, HSA_DEVICE_TYPE_GPU = 1 };

enum hsa_agent_info_t : int {
  HSA_AGENT_INFO_NAME = 0,                          // char[64]
  HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,                // uint32_t
  HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8,            // uint32_t
  HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,               // uint32_t
  HSA_AGENT_INFO_DEVICE = 17,                       // hsa_device_type_t
  HSA_AGENT_INFO_CACHE_SIZE = 18,                   // uint32_t[4]
  HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002,   // uint32_t
  HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xA003,  // uint32_t, MHz
  HSA_AMD_AGENT_INFO_BDFID = 0xA006,  // uint32_t: bus, 8 bits; device, 5 bits; function, 3 bits
  HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xA007,          // uint32_t, bits
  HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xA008,  // uint32_t, MHz
  HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009,          // char[64]
  HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xA00A,      // uint32_t
  HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F,                // uint32_t
  HSA_AMD_AGENT_INFO_UUID = 0xA011,                  // char[21]: "GPU-…"
};

enum hsa_isa_info_t : int { HSA_ISA_INFO_NAME_LENGTH = 0, HSA_ISA_INFO_NAME = 1 };

enum hsa_amd_segment_t : int { HSA_AMD_SEGMENT_GLOBAL = 0, HSA_AMD_SEGMENT_GROUP = 3 };
enum hsa_amd_memory_pool_info_t : int {
  HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,                // hsa_amd_segment_t
  HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,           // uint32_t
  HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,                   // size_t
  HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,  // bool
};
enum hsa_amd_memory_pool_global_flag_t : uint32_t {
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
};
enum hsa_amd_agent_memory_pool_info_t : int { HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0 };
enum hsa_amd_memory_pool_access_t : int {
  HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0,
  HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1,
  HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2,
};

enum hsa_signal_condition_t : int { HSA_SIGNAL_CONDITION_LT = 2 };
enum hsa_wait_state_t : int { HSA_WAIT_STATE_BLOCKED = 0, HSA_WAIT_STATE_ACTIVE = 1 };

enum hsa_queue_type32_t : uint32_t { HSA_QUEUE_TYPE_MULTI = 0, HSA_QUEUE_TYPE_SINGLE = 1 };
struct hsa_queue_t {
  uint32_t type;
  uint32_t features;
  void* base_address;  // of `size` packets, a power of two
  hsa_signal_t doorbell_signal;
  uint32_t size;
  uint32_t reserved1;
  uint64_t id;
};

// Bits of a packet's header: the type from 0 on, the barrier bit at 8, the acquire fence's scope
// from 9 on and the release fence's scope from 11 on.
enum hsa_packet_type_t : uint16_t {
  HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0,
  HSA_PACKET_TYPE_INVALID = 1,
  HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
  HSA_PACKET_TYPE_BARRIER_AND = 3,
};
enum hsa_fence_scope_t : uint16_t {
  HSA_FENCE_SCOPE_NONE = 0,
  HSA_FENCE_SCOPE_AGENT = 1,
  HSA_FENCE_SCOPE_SYSTEM = 2,
};
enum hsa_packet_header_t : int {
  HSA_PACKET_HEADER_TYPE = 0,
  HSA_PACKET_HEADER_BARRIER = 8,
  HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE = 9,
  HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE = 11,
};

struct hsa_kernel_dispatch_packet_t {
  uint16_t header;
  uint16_t setup;  // the number of dimensions
  uint16_t workgroup_size_x;
  uint16_t workgroup_size_y;
  uint16_t workgroup_size_z;
  uint16_t reserved0;
  uint32_t grid_size_x;  // in threads
  uint32_t grid_size_y;
  uint32_t grid_size_z;
  uint32_t private_segment_size;
  uint32_t group_segment_size;
  uint64_t kernel_object;
  void* kernarg_address;
  uint64_t reserved2;
  hsa_signal_t completion_signal;
};
struct hsa_barrier_and_packet_t {
  uint16_t header;
  uint16_t reserved0;
  uint32_t reserved1;
  hsa_signal_t dep_signal[5];
  uint64_t reserved2;
  hsa_signal_t completion_signal;
};
static_assert(sizeof(hsa_kernel_dispatch_packet_t) == 64);
static_assert(sizeof(hsa_barrier_and_packet_t) == 64);

enum hsa_profile_t : int { HSA_PROFILE_BASE = 0, HSA_PROFILE_FULL = 1 };
enum hsa_default_float_rounding_mode_t : int { HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0 };
enum hsa_executable_symbol_info_t : int {
  HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,       // uint32_t
  HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12,  // uint32_t
  HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,         // uint32_t
  HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,       // uint32_t
  HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22,                     // uint64_t
};

struct hsa_amd_profiling_dispatch_time_t {
  uint64_t start;
  uint64_t end;
};
struct hsa_amd_profiling_async_copy_time_t {
  uint64_t start;
  uint64_t end;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_API_TYPES_H_
