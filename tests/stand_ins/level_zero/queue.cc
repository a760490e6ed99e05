// Queues and fences.
#include <algorithm>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

// Runs the first task, and removes it from the queue when it has ended. Requires the lock, which is
// released while it runs.
void RunFirst(Queue& queue, Lock& lock) {
  Queue::Task& task = queue.tasks.front();
  Control& control = TheControl();
  lock.unlock();
  ze_result_t result = ZE_RESULT_SUCCESS;
  Ran ran;
  if (task.command) {
    ran = RunCommand(*queue.context, queue.device, *task.command);
  } else {
    for (const std::shared_ptr<List>& list : task.lists) {
      const ze_result_t ended = RunList(*queue.context, *list, control.order_seed++);
      if (result == ZE_RESULT_SUCCESS) result = ended;
    }
  }
  lock.lock();
  // Together with the task, so that a thread that sees its end finds the queue idle.
  if (task.command) Signal(*task.command, ran);
  for (const std::shared_ptr<List>& list : task.lists) --list->in_flight;
  if (task.fence != nullptr) {
    task.fence->pending = false;
    task.fence->signalled = true;
    task.fence->result = result;
  }
  queue.tasks.pop_front();
  TheRuntime().changed.notify_all();
}

void RunQueue(const std::shared_ptr<Queue>& queue) {
  Lock lock(TheRuntime().mutex);
  while (true) {
    while (queue->tasks.empty() && !queue->stopping) TheRuntime().changed.wait(lock);
    if (queue->tasks.empty()) return;
    RunFirst(*queue, lock);
  }
}

// Why a list must not be executed there; empty: it may.
std::string WhyNot(const Queue& queue, const List& list) {
  if (list.context != queue.context || list.device != queue.device ||
      list.ordinal != queue.ordinal) {
    return "of another context, device or group";
  }
  if (list.queue != nullptr) return "that is an immediate one";
  if (!list.closed) return "that is not closed";
  if (list.in_flight > 0) return "that is on its way already";
  return "";
}

}  // namespace

std::shared_ptr<Queue> StartQueue(std::shared_ptr<Context> context, int device, uint32_t ordinal) {
  auto queue = std::make_shared<Queue>(Queue{std::move(context), device, ordinal});
  queue->thread = std::thread([queue] { RunQueue(queue); });
  return queue;
}

void StopQueue(const std::shared_ptr<Queue>& queue, Lock& lock) {
  queue->stopping = true;
  TheRuntime().changed.notify_all();
  lock.unlock();
  queue->thread.join();
  lock.lock();
}

extern "C" {

ze_result_t zeCommandQueueCreate(ze_context_handle_t context, ze_device_handle_t device,
                                 const ze_command_queue_desc_t* desc,
                                 ze_command_queue_handle_t* queue) {
  return Guarded("zeCommandQueueCreate", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    const int number = DeviceOf(device);
    if (found == nullptr || number < 0 || desc == nullptr || desc->index != 0 ||
        desc->stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC || desc->ordinal > kCopyOrdinal) {
      return Mistake("zeCommandQueueCreate with no context, device or queue",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found, number); answer != ZE_RESULT_SUCCESS)
      return answer;
    *queue = TheRuntime().queues.Add(StartQueue(found, number, desc->ordinal));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t handle) {
  return Guarded("zeCommandQueueDestroy", [&](Lock& lock) {
    const auto queue = TheRuntime().queues.Find(handle);
    if (queue == nullptr)
      return Mistake("zeCommandQueueDestroy of no queue", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    bool has_fences = false;
    TheRuntime().fences.ForEach([&](const Fence& fence) { has_fences |= fence.queue == queue; });
    if (has_fences || !queue->tasks.empty()) {
      return Mistake("zeCommandQueueDestroy of a queue that is busy or has fences",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    }
    TheRuntime().queues.Remove(handle);
    StopQueue(queue, lock);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t handle, uint32_t count,
                                              ze_command_list_handle_t* lists,
                                              ze_fence_handle_t fence_handle) {
  return Guarded("zeCommandQueueExecuteCommandLists", [&](Lock&) {
    Runtime& runtime = TheRuntime();
    const auto queue = runtime.queues.Find(handle);
    if (queue == nullptr || count == 0 || lists == nullptr)
      return Mistake("an execution on no queue or of no list", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    Queue::Task task;
    for (uint32_t i = 0; i < count; ++i) {
      const auto list = runtime.lists.Find(lists[i]);
      const bool twice = std::find(lists, lists + i, lists[i]) != lists + i;
      const std::string why = list == nullptr ? "that is none"
                              : twice         ? "that is in it twice"
                                              : WhyNot(*queue, *list);
      if (!why.empty())
        return Mistake("an execution of a list " + why, ZE_RESULT_ERROR_INVALID_ARGUMENT);
      task.lists.push_back(list);
    }
    if (fence_handle != nullptr) {
      task.fence = runtime.fences.Find(fence_handle);
      if (task.fence == nullptr || task.fence->queue != queue || task.fence->pending ||
          task.fence->signalled) {
        return Mistake("an execution with a fence of another queue, or that was not reset",
                       ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
      }
    }
    if (const ze_result_t answer = AnswerOf(*queue->context, queue->device);
        answer != ZE_RESULT_SUCCESS)
      return answer;
    if (const int code = TheControl().next_execution_refused.exchange(0); code != 0)
      return static_cast<ze_result_t>(code);
    for (const std::shared_ptr<List>& list : task.lists) ++list->in_flight;
    if (task.fence != nullptr) task.fence->pending = true;
    ++TheControl().executions;
    queue->tasks.push_back(std::move(task));
    runtime.changed.notify_all();
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeFenceCreate(ze_command_queue_handle_t queue, const ze_fence_desc_t* desc,
                          ze_fence_handle_t* fence) {
  return Guarded("zeFenceCreate", [&](Lock&) {
    const auto found = TheRuntime().queues.Find(queue);
    if (found == nullptr || desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_FENCE_DESC) {
      return Mistake("zeFenceCreate with no queue or another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found->context, found->device);
        answer != ZE_RESULT_SUCCESS)
      return answer;
    *fence = TheRuntime().fences.Add(std::make_shared<Fence>(Fence{found}));
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeFenceDestroy(ze_fence_handle_t handle) {
  return Guarded("zeFenceDestroy", [&](Lock&) {
    const auto fence = TheRuntime().fences.Find(handle);
    if (fence == nullptr || fence->pending) {
      return Mistake("zeFenceDestroy of no fence, or of one on its way",
                     ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    }
    TheRuntime().fences.Remove(handle);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeFenceHostSynchronize(ze_fence_handle_t handle, uint64_t timeout) {
  return Guarded("zeFenceHostSynchronize", [&](Lock& lock) {
    const auto fence = TheRuntime().fences.Find(handle);
    if (fence == nullptr || !(fence->pending || fence->signalled)) {
      return Mistake("zeFenceHostSynchronize of no fence, or of one that was not executed with",
                     ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    }
    const ze_result_t answer = Await(*fence->queue->context, fence->queue->device, timeout, lock,
                                     [&] { return fence->signalled; });
    return answer == ZE_RESULT_SUCCESS ? fence->result : answer;
  });
}

ze_result_t zeFenceReset(ze_fence_handle_t handle) {
  return Guarded("zeFenceReset", [&](Lock&) {
    const auto fence = TheRuntime().fences.Find(handle);
    if (fence == nullptr)
      return Mistake("zeFenceReset of no fence", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (fence->pending)
      return Mistake("zeFenceReset of one on its way", ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    fence->signalled = false;
    return ZE_RESULT_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero
