// Events and their pools.
#include <algorithm>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {

extern "C" {

ze_result_t zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t* desc,
                              uint32_t device_count, ze_device_handle_t* devices,
                              ze_event_pool_handle_t* pool) {
  return Guarded("zeEventPoolCreate", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    const int number = device_count == 1 && devices != nullptr ? DeviceOf(devices[0]) : -1;
    if (found == nullptr || desc == nullptr || desc->count == 0 || number < 0 ||
        desc->stype != ZE_STRUCTURE_TYPE_EVENT_POOL_DESC) {
      return Mistake("zeEventPoolCreate with no context, device or events",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found, number); answer != ZE_RESULT_SUCCESS)
      return answer;
    *pool = TheRuntime().pools.Add(std::make_shared<EventPool>(
        EventPool{found, number, desc->flags, desc->count, std::vector<bool>(desc->count)}));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t handle) {
  return Guarded("zeEventPoolDestroy", [&](Lock&) {
    const auto pool = TheRuntime().pools.Find(handle);
    if (pool == nullptr)
      return Mistake("zeEventPoolDestroy of no pool", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (std::find(pool->used.begin(), pool->used.end(), true) != pool->used.end())
      return Mistake("zeEventPoolDestroy of a pool with events",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    TheRuntime().pools.Remove(handle);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t* desc,
                          ze_event_handle_t* event) {
  return Guarded("zeEventCreate", [&](Lock&) {
    const auto found = TheRuntime().pools.Find(pool);
    if (found == nullptr || desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_EVENT_DESC ||
        desc->index >= found->count || found->used[desc->index]) {
      return Mistake("zeEventCreate in no pool, or at a place that is taken",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    found->used[desc->index] = true;
    *event = TheRuntime().events.Add(std::make_shared<Event>(Event{found, desc->index}));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeEventDestroy(ze_event_handle_t handle) {
  return Guarded("zeEventDestroy", [&](Lock&) {
    const auto event = TheRuntime().events.Find(handle);
    if (event == nullptr)
      return Mistake("zeEventDestroy of no event", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    event->pool->used[event->index] = false;
    TheRuntime().events.Remove(handle);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeEventHostSynchronize(ze_event_handle_t handle, uint64_t timeout) {
  return Guarded("zeEventHostSynchronize", [&](Lock& lock) {
    const auto event = TheRuntime().events.Find(handle);
    if (event == nullptr || (event->pool->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE) == 0) {
      return Mistake("zeEventHostSynchronize of no event, or of one that the host does not see",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    const ze_result_t answer = Await(*event->pool->context, event->pool->device, timeout, lock,
                                     [&] { return event->signalled; });
    return answer == ZE_RESULT_SUCCESS ? event->result : answer;
  });
}

ze_result_t zeEventHostReset(ze_event_handle_t handle) {
  return Guarded("zeEventHostReset", [&](Lock&) {
    const auto event = TheRuntime().events.Find(handle);
    if (event == nullptr)
      return Mistake("zeEventHostReset of no event", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    event->signalled = false;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t handle,
                                        ze_kernel_timestamp_result_t* to) {
  return Guarded("zeEventQueryKernelTimestamp", [&](Lock&) {
    const auto event = TheRuntime().events.Find(handle);
    if (event == nullptr || (event->pool->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP) == 0) {
      return Mistake("zeEventQueryKernelTimestamp of an event that keeps none",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (!event->signalled) return ZE_RESULT_NOT_READY;
    constexpr uint64_t kMask = (uint64_t{1} << kTimestampBits) - 1;
    to->global.kernelStart = event->begin / kCycleNanoseconds & kMask;
    to->global.kernelEnd = event->end / kCycleNanoseconds & kMask;
    to->context = to->global;
    return ZE_RESULT_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero
