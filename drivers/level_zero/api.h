// The functions of Level Zero's core API that Kiln uses, as exported by libze_loader.so.1 since
// version 1.0. They are looked up at run time (library.h), never linked. The stand-in library
// defines them, so that the compiler checks both sides against the same declarations.
#ifndef KILN_DRIVERS_LEVEL_ZERO_API_H_
#define KILN_DRIVERS_LEVEL_ZERO_API_H_

#include "drivers/level_zero/api_types.h"

namespace kiln::drivers::level_zero {

// NOLINTBEGIN(readability-identifier-naming)

extern "C" {

// The library.
ze_result_t zeInit(uint32_t flags);
ze_result_t zeDriverGet(uint32_t* count, ze_driver_handle_t* drivers);
ze_result_t zeDriverGetApiVersion(ze_driver_handle_t driver, ze_api_version_t* version);
ze_result_t zeDriverGetProperties(ze_driver_handle_t driver, ze_driver_properties_t* properties);

// Devices.
ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t* count, ze_device_handle_t* devices);
ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t* properties);
ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t device,
                                         ze_device_compute_properties_t* properties);
ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t device,
                                        ze_device_module_properties_t* properties);
ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t device, uint32_t* count,
                                                   ze_command_queue_group_properties_t* properties);
ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t* count,
                                        ze_device_memory_properties_t* properties);
ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t device, uint32_t* count,
                                       ze_device_cache_properties_t* properties);
ze_result_t zeDeviceGetStatus(ze_device_handle_t device);

// Contexts and memory.
ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t* desc,
                            ze_context_handle_t* context);
ze_result_t zeContextDestroy(ze_context_handle_t context);
ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t* desc,
                             size_t bytes, size_t alignment, ze_device_handle_t device,
                             void** memory);
ze_result_t zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t* desc,
                           size_t bytes, size_t alignment, void** memory);
ze_result_t zeMemFree(ze_context_handle_t context, void* memory);

// Modules and kernels.
ze_result_t zeModuleCreate(ze_context_handle_t context, ze_device_handle_t device,
                           const ze_module_desc_t* desc, ze_module_handle_t* module,
                           ze_module_build_log_handle_t* log);
ze_result_t zeModuleDestroy(ze_module_handle_t module);
ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t log);
ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t log, size_t* bytes, char* text);
ze_result_t zeModuleGetNativeBinary(ze_module_handle_t module, size_t* bytes, uint8_t* binary);
ze_result_t zeModuleGetKernelNames(ze_module_handle_t module, uint32_t* count, const char** names);
ze_result_t zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t* desc,
                           ze_kernel_handle_t* kernel);
ze_result_t zeKernelDestroy(ze_kernel_handle_t kernel);
ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t kernel, uint32_t x, uint32_t y, uint32_t z);
ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t kernel, uint32_t index, size_t bytes,
                                     const void* value);
ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t kernel, uint32_t flags);
ze_result_t zeKernelGetProperties(ze_kernel_handle_t kernel, ze_kernel_properties_t* properties);

// Command lists.
ze_result_t zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
                                const ze_command_list_desc_t* desc, ze_command_list_handle_t* list);
ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                         const ze_command_queue_desc_t* altdesc,
                                         ze_command_list_handle_t* list);
ze_result_t zeCommandListDestroy(ze_command_list_handle_t list);
ze_result_t zeCommandListClose(ze_command_list_handle_t list);
ze_result_t zeCommandListReset(ze_command_list_handle_t list);
ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list,
                                       ze_event_handle_t signal_event, uint32_t wait_event_count,
                                       ze_event_handle_t* wait_events);
ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void* to, const void* from,
                                          size_t bytes, ze_event_handle_t signal_event,
                                          uint32_t wait_event_count,
                                          ze_event_handle_t* wait_events);
ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void* memory,
                                          const void* pattern, size_t pattern_bytes, size_t bytes,
                                          ze_event_handle_t signal_event, uint32_t wait_event_count,
                                          ze_event_handle_t* wait_events);
ze_result_t zeCommandListAppendLaunchKernel(
    ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t* groups,
    ze_event_handle_t signal_event, uint32_t wait_event_count, ze_event_handle_t* wait_events);

// Queues, fences and events.
ze_result_t zeCommandQueueCreate(ze_context_handle_t context, ze_device_handle_t device,
                                 const ze_command_queue_desc_t* desc,
                                 ze_command_queue_handle_t* queue);
ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t queue);
ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t queue, uint32_t count,
                                              ze_command_list_handle_t* lists,
                                              ze_fence_handle_t fence);
ze_result_t zeFenceCreate(ze_command_queue_handle_t queue, const ze_fence_desc_t* desc,
                          ze_fence_handle_t* fence);
ze_result_t zeFenceDestroy(ze_fence_handle_t fence);
ze_result_t zeFenceHostSynchronize(ze_fence_handle_t fence, uint64_t timeout);
ze_result_t zeFenceReset(ze_fence_handle_t fence);
ze_result_t zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t* desc,
                              uint32_t device_count, ze_device_handle_t* devices,
                              ze_event_pool_handle_t* pool);
ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t pool);
ze_result_t zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t* desc,
                          ze_event_handle_t* event);
ze_result_t zeEventDestroy(ze_event_handle_t event);
ze_result_t zeEventHostSynchronize(ze_event_handle_t event, uint64_t timeout);
ze_result_t zeEventHostReset(ze_event_handle_t event);
ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t event, ze_kernel_timestamp_result_t* to);

}  // extern "C"

// NOLINTEND(readability-identifier-naming)

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_API_H_
