// The part of cl_khr_command_buffer that Kiln's driver calls; stricter than real libraries.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/stand_ins/opencl/objects.h"

namespace {

cl_int Misuse(cl_int code) {
  ++TheControl().mistakes;
  return code;
}

cl_command_buffer_khr Refuse(cl_int code, cl_int* answer) {
  *answer = Misuse(code);
  return nullptr;
}

cl_command_buffer_khr Create(cl_uint num_queues, const cl_command_queue* queues,
                             const cl_command_buffer_properties_khr* properties, cl_int* code) {
  if (num_queues != 1 || queues == nullptr) return Refuse(CL_INVALID_VALUE, code);
  const uint64_t required = TheControl().required_queue_properties;
  if ((queues[0]->properties & required) != required)
    return Refuse(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR, code);
  const uint64_t capabilities = TheControl().command_buffer_capabilities;
  bool simultaneous = false;
  for (; properties != nullptr && *properties != 0; properties += 2) {
    if (properties[0] != CL_COMMAND_BUFFER_FLAGS_KHR) return Refuse(CL_INVALID_VALUE, code);
    simultaneous = (properties[1] & CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR) != 0;
  }
  if (simultaneous && (capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) == 0)
    return Refuse(CL_INVALID_PROPERTY, code);
  *code = CL_SUCCESS;
  auto* buffer = new _cl_command_buffer_khr;
  buffer->queue = queues[0];
  buffer->simultaneous = simultaneous;
  ++TheControl().buffers_made;
  return buffer;
}

cl_int Record(cl_command_buffer_khr buffer, cl_command_queue queue,
              const cl_ndrange_kernel_command_properties_khr*, cl_kernel kernel, cl_uint dimensions,
              const size_t*, const size_t* global, const size_t* local, cl_uint num_waits,
              const cl_sync_point_khr*, cl_sync_point_khr*, cl_mutable_command_khr* handle) {
  if (buffer == nullptr) return Misuse(CL_INVALID_COMMAND_BUFFER_KHR);
  std::lock_guard lock(buffer->mutex);
  if (queue != nullptr) return Misuse(CL_INVALID_COMMAND_QUEUE);
  if (buffer->finalized) return Misuse(CL_INVALID_OPERATION);
  if (num_waits != 0) return Misuse(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR);
  if (handle != nullptr) return Misuse(CL_INVALID_VALUE);
  if (static_cast<int>(buffer->launches.size()) >= TheControl().recorded_launches_max)
    return CL_OUT_OF_RESOURCES;
  std::function<cl_int()> run;
  if (const cl_int code = kernel->Launch(dimensions, global, local, &run)) return Misuse(code);
  buffer->launches.push_back(std::move(run));
  ++TheControl().launches_recorded;
  return CL_SUCCESS;
}

cl_int Finalize(cl_command_buffer_khr buffer) {
  std::lock_guard lock(buffer->mutex);
  if (buffer->finalized) return Misuse(CL_INVALID_OPERATION);
  if (const cl_int code = TheControl().finalize_refused) return code;
  buffer->finalized = true;
  return CL_SUCCESS;
}

cl_int Release(cl_command_buffer_khr buffer) { return ReleaseObject(buffer); }

// Called on the queue's thread: runs the launches in order, up to the first that fails.
cl_int RunAll(cl_command_buffer_khr buffer, cl_int end) {
  for (const auto& launch : buffer->launches) {
    if (const cl_int code = launch()) end = code;
    if (end != CL_SUCCESS) break;
  }
  {
    std::lock_guard lock(buffer->mutex);
    --buffer->pending;
  }
  ReleaseObject(buffer);
  return end;
}

cl_int Enqueue(cl_uint num_queues, cl_command_queue* queues, cl_command_buffer_khr buffer,
               cl_uint num_waits, const cl_event* waits, cl_event* event) {
  if (buffer == nullptr) return Misuse(CL_INVALID_COMMAND_BUFFER_KHR);
  if (num_queues != 0 || queues != nullptr) return Misuse(CL_INVALID_VALUE);
  if (num_waits != 0 || waits != nullptr) return Misuse(CL_INVALID_EVENT_WAIT_LIST);
  if (!_cl_command_queue::IsAlive(buffer->queue)) return Misuse(CL_INVALID_COMMAND_QUEUE);
  if (const int code = TheControl().next_buffer_refused.exchange(0)) return code;
  {
    std::lock_guard lock(buffer->mutex);
    if (!buffer->finalized || (buffer->pending > 0 && !buffer->simultaneous))
      return Misuse(CL_INVALID_OPERATION);
    ++buffer->pending;
  }
  ++buffer->references;
  ++TheControl().buffers_enqueued;
  const cl_int end = TheControl().next_buffer_fails.exchange(0);
  // As in real libraries, the event belongs to an empty command after the launches.
  auto ended = std::make_shared<cl_int>(CL_SUCCESS);
  cl_command_queue queue = buffer->queue;
  queue->Push([buffer, end, ended] { return *ended = RunAll(buffer, end); }, false, nullptr);
  return queue->Push([ended] { return *ended; }, false, event);
}

template <typename Function>
void* Address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

// The buffer holds no reference to the queue: its creator must keep the queue.
_cl_command_buffer_khr::~_cl_command_buffer_khr() {
  if (!_cl_command_queue::IsAlive(queue)) Misuse(0);
}

void* FindCommandBufferFunction(const std::string& name) {
  const std::pair<const char*, void*> functions[] = {
      {"clCreateCommandBufferKHR", Address(&Create)},
      {"clCommandNDRangeKernelKHR", Address(&Record)},
      {"clFinalizeCommandBufferKHR", Address(&Finalize)},
      {"clReleaseCommandBufferKHR", Address(&Release)},
      {"clEnqueueCommandBufferKHR", Address(&Enqueue)},
  };
  const auto* found = std::find_if(std::begin(functions), std::end(functions),
                                   [&](const auto& row) { return row.first == name; });
  return found == std::end(functions) ? nullptr : found->second;
}
