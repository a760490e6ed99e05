// Command lists, and the commands appended to them.
#include <algorithm>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

// Appends the command, or starts it if the list is an immediate one. Requires the lock.
ze_result_t Take(const std::shared_ptr<List>& list, Command command, Lock& lock) {
  Runtime& runtime = TheRuntime();
  ++TheControl().commands_appended;
  if (list->queue == nullptr) {
    list->commands.push_back(std::move(command));
    return ZE_RESULT_SUCCESS;
  }
  list->queue->tasks.push_back({{}, std::move(command), nullptr});
  runtime.changed.notify_all();
  if (!list->synchronous) return ZE_RESULT_SUCCESS;
  while (!list->queue->tasks.empty()) runtime.changed.wait(lock);
  return AnswerOf(*list->context, list->device);
}

// Calls `body`(list, event, Lock&) if the list may be appended to.
template <typename Body>
ze_result_t Appending(const char* call, ze_command_list_handle_t handle, ze_event_handle_t signal,
                      uint32_t wait_event_count, Body body) {
  return Guarded(call, [&](Lock& lock) {
    Runtime& runtime = TheRuntime();
    const auto list = runtime.lists.Find(handle);
    if (list == nullptr)
      return Mistake(std::string(call) + " to no list", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (list->closed)
      return Mistake(std::string(call) + " to a closed list", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    if (wait_event_count != 0)
      return Mistake(std::string(call) + " with events to wait for, which the stand-in has not",
                     ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    std::shared_ptr<Event> event;
    if (signal != nullptr) {
      event = runtime.events.Find(signal);
      if (event == nullptr || event->pool->context != list->context) {
        return Mistake(std::string(call) + " with an event that is not the context's",
                       ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
      }
    }
    if (const ze_result_t answer = AnswerOf(*list->context, list->device);
        answer != ZE_RESULT_SUCCESS)
      return answer;
    return body(list, std::move(event), lock);
  });
}

ze_result_t MakeLaunch(const std::shared_ptr<List>& list, ze_kernel_handle_t handle,
                       const ze_group_count_t* groups, Command* command) {
  const auto kernel = TheRuntime().kernels.Find(handle);
  if (kernel == nullptr || groups == nullptr || kernel->module->context != list->context ||
      kernel->module->device != list->device) {
    return Mistake("a launch of a kernel that is not the list's device's",
                   ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
  }
  if (list->ordinal != kComputeOrdinal)
    return Mistake("a launch in a list that only copies",
                   ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
  if (kernel->group_size[0] == 0)
    return Mistake("a launch without a group size", ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
  if (groups->groupCountX == 0 || groups->groupCountX > kGroupsMax || groups->groupCountY != 1 ||
      groups->groupCountZ != 1) {
    return Mistake("a launch of no groups, too many, or in more dimensions",
                   ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION);
  }
  if (kernel->module->facts.makes_pointers && !kernel->indirect) {
    return Mistake("a launch of a kernel that finds pointers in memory and does not say so",
                   ZE_RESULT_ERROR_INVALID_ARGUMENT);
  }
  command->kind = Command::Kind::kLaunch;
  command->kernel = kernel;
  command->groups = groups->groupCountX;
  command->group_size = kernel->group_size[0];
  for (size_t i = 0; i < kernel->arguments.size(); ++i) {
    if (!kernel->arguments[i])
      return Mistake("a launch with an argument that is not set", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    command->arguments.push_back({*kernel->arguments[i], kernel->entry->parameters[i].is_pointer});
  }
  return ZE_RESULT_SUCCESS;
}

}  // namespace

extern "C" {

ze_result_t zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
                                const ze_command_list_desc_t* desc,
                                ze_command_list_handle_t* list) {
  return Guarded("zeCommandListCreate", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    const int number = DeviceOf(device);
    if (found == nullptr || number < 0 || desc == nullptr ||
        desc->stype != ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC ||
        desc->commandQueueGroupOrdinal > kCopyOrdinal) {
      return Mistake("zeCommandListCreate with no context, device or group",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found, number); answer != ZE_RESULT_SUCCESS)
      return answer;
    *list = TheRuntime().lists.Add(
        std::make_shared<List>(List{found, number, desc->commandQueueGroupOrdinal}));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                         const ze_command_queue_desc_t* desc,
                                         ze_command_list_handle_t* list) {
  return Guarded("zeCommandListCreateImmediate", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    const int number = DeviceOf(device);
    const uint32_t groups = TheControl().copy_queues ? 2 : 1;
    if (found == nullptr || number < 0 || desc == nullptr || desc->index != 0 ||
        desc->stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC || desc->ordinal >= groups) {
      return Mistake("zeCommandListCreateImmediate with no context, device or queue",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found, number); answer != ZE_RESULT_SUCCESS)
      return answer;
    auto made = std::make_shared<List>(List{found, number, desc->ordinal});
    made->queue = StartQueue(found, number, desc->ordinal);
    made->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    *list = TheRuntime().lists.Add(std::move(made));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t handle) {
  return Guarded("zeCommandListDestroy", [&](Lock& lock) {
    const auto list = TheRuntime().lists.Find(handle);
    if (list == nullptr)
      return Mistake("zeCommandListDestroy of no list", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    const bool busy = list->queue != nullptr && !list->queue->tasks.empty();
    if (list->in_flight > 0 || busy) {
      return Mistake("zeCommandListDestroy of a list on its way",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    }
    TheRuntime().lists.Remove(handle);
    if (list->queue != nullptr) StopQueue(list->queue, lock);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandListClose(ze_command_list_handle_t handle) {
  return Guarded("zeCommandListClose", [&](Lock&) {
    const auto list = TheRuntime().lists.Find(handle);
    if (list == nullptr || list->queue != nullptr || list->closed) {
      return Mistake("zeCommandListClose of no list, an immediate or a closed one",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    list->closed = true;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandListReset(ze_command_list_handle_t handle) {
  return Guarded("zeCommandListReset", [&](Lock&) {
    const auto list = TheRuntime().lists.Find(handle);
    if (list == nullptr || list->queue != nullptr || list->in_flight > 0) {
      return Mistake("zeCommandListReset of no list, an immediate one or one on its way",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    list->commands.clear();
    list->closed = false;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t signal,
                                       uint32_t wait_event_count, ze_event_handle_t*) {
  return Appending("zeCommandListAppendBarrier", list, signal, wait_event_count,
                   [&](const std::shared_ptr<List>& to, std::shared_ptr<Event> event, Lock& lock) {
                     return Take(to, {.signal = std::move(event)}, lock);
                   });
}

ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void* to, const void* from,
                                          size_t bytes, ze_event_handle_t signal,
                                          uint32_t wait_event_count, ze_event_handle_t*) {
  return Appending("zeCommandListAppendMemoryCopy", list, signal, wait_event_count,
                   [&](const std::shared_ptr<List>& in, std::shared_ptr<Event> event, Lock& lock) {
                     auto* const begin = static_cast<char*>(to);
                     const auto* const source = static_cast<const char*>(from);
                     if (bytes == 0 || FindAllocation(*in->context, begin, bytes) == nullptr ||
                         FindAllocation(*in->context, source, bytes) == nullptr) {
                       return Mistake("a copy of nothing, or of memory that is not the context's",
                                      ZE_RESULT_ERROR_INVALID_ARGUMENT);
                     }
                     if (begin < source + bytes && source < begin + bytes)
                       return Mistake("a copy onto itself", ZE_RESULT_ERROR_OVERLAPPING_REGIONS);
                     return Take(in,
                                 {.kind = Command::Kind::kCopy,
                                  .to = begin,
                                  .from = source,
                                  .bytes = bytes,
                                  .signal = std::move(event)},
                                 lock);
                   });
}

ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void* memory,
                                          const void* pattern, size_t pattern_bytes, size_t bytes,
                                          ze_event_handle_t signal, uint32_t wait_event_count,
                                          ze_event_handle_t*) {
  return Appending(
      "zeCommandListAppendMemoryFill", list, signal, wait_event_count,
      [&](const std::shared_ptr<List>& in, std::shared_ptr<Event> event, Lock& lock) {
        const size_t pattern_bytes_max = in->ordinal == kComputeOrdinal ? 16 : 1;
        auto* const begin = static_cast<char*>(memory);
        if (bytes == 0 || FindAllocation(*in->context, begin, bytes) == nullptr) {
          return Mistake("a fill of nothing, or of memory that is not the context's",
                         ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        const bool power = pattern_bytes > 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
        if (!power || pattern_bytes > pattern_bytes_max || bytes % pattern_bytes != 0)
          return Mistake("a fill with a pattern that does not fit", ZE_RESULT_ERROR_INVALID_SIZE);
        const auto* const value = static_cast<const uint8_t*>(pattern);
        return Take(in,
                    {.kind = Command::Kind::kFill,
                     .to = begin,
                     .bytes = bytes,
                     .pattern = {value, value + pattern_bytes},
                     .signal = std::move(event)},
                    lock);
      });
}

ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t list,
                                            ze_kernel_handle_t kernel,
                                            const ze_group_count_t* groups,
                                            ze_event_handle_t signal, uint32_t wait_event_count,
                                            ze_event_handle_t*) {
  return Appending("zeCommandListAppendLaunchKernel", list, signal, wait_event_count,
                   [&](const std::shared_ptr<List>& in, std::shared_ptr<Event> event, Lock& lock) {
                     if (const int code = TheControl().next_append_refused.exchange(0); code != 0)
                       return static_cast<ze_result_t>(code);
                     Command command = {.signal = std::move(event)};
                     const ze_result_t made = MakeLaunch(in, kernel, groups, &command);
                     return made == ZE_RESULT_SUCCESS ? Take(in, std::move(command), lock) : made;
                   });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero
