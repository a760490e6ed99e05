// Queues, events and memory, which are real. Kernels do what a test says.
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "tests/stand_ins/opencl/objects.h"

namespace {

cl_ulong Now() { return TheControl().time.Nanoseconds(); }

// The result of any work on a device.
cl_int Working(const std::function<void()>& work) {
  if (TheControl().lost) return CL_OUT_OF_RESOURCES;
  work();
  return CL_SUCCESS;
}

std::mutex alive_mutex;
std::set<cl_command_queue>& TheQueues() {
  static auto* const queues = new std::set<cl_command_queue>;
  return *queues;
}

}  // namespace

void _cl_event::End(cl_int with) {
  std::lock_guard lock(mutex);
  end = Now();
  status = with;
  TheControl().waiting -= std::exchange(waiting, 0);
  ended.notify_all();
}

cl_int _cl_event::Wait() {
  std::unique_lock lock(mutex);
  if (status <= CL_COMPLETE) return status;
  ++waiting;
  ++TheControl().waiting;
  ended.wait(lock, [this] { return status <= CL_COMPLETE; });
  return status;
}

bool _cl_command_queue::IsAlive(cl_command_queue queue) {
  std::lock_guard lock(alive_mutex);
  return TheQueues().count(queue) > 0;
}

cl_int _cl_kernel::Launch(cl_uint dimensions, const size_t* global, const size_t* local,
                          std::function<cl_int()>* run) const {
  if (dimensions != 1 || *local == 0 || *global % *local != 0) return CL_INVALID_WORK_GROUP_SIZE;
  if (set != parameters) return CL_INVALID_KERNEL_ARGS;
  *run = [values = values, named = named] {
    TheControl().launch_gate.Pass();
    return Working([&] {
      ++TheControl().launches;
      TheControl().time.HasLaunched();
      if (const auto kernel = TheControl().kernel.load()) {
        kernel({values.data(), static_cast<int>(values.size()), named.data(),
                static_cast<int>(named.size())});
      }
    });
  };
  return CL_SUCCESS;
}

_cl_command_queue::_cl_command_queue() : thread_([this] { Run(); }) {
  std::lock_guard lock(alive_mutex);
  TheQueues().insert(this);
}

_cl_command_queue::~_cl_command_queue() {
  {
    std::lock_guard lock(alive_mutex);
    TheQueues().erase(this);
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

cl_int _cl_command_queue::Push(std::function<cl_int()> work, bool blocking, cl_event* event) {
  auto* made = new _cl_event;
  made->references = 3;  // of the queue, this function and the caller
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(work), made});
    changed_.notify_all();
  }
  const cl_int status = blocking ? made->Wait() : CL_SUCCESS;
  if (event != nullptr) {
    *event = made;
  } else {
    ReleaseObject(made);
  }
  ReleaseObject(made);
  return status;
}

cl_int _cl_command_queue::Finish() {
  return Push([] { return Working([] {}); }, true, nullptr);
}

void _cl_command_queue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    {
      std::lock_guard starting(task.event->mutex);
      task.event->start = Now();
    }
    task.event->End(task.work());
    ReleaseObject(task.event);
    lock.lock();
  }
}

extern "C" {

cl_command_queue clCreateCommandQueueWithProperties(cl_context, cl_device_id,
                                                    const cl_queue_properties* properties,
                                                    cl_int* code) {
  *code = CL_SUCCESS;
  auto* queue = new _cl_command_queue;
  for (; properties != nullptr && *properties != 0; properties += 2)
    if (*properties == CL_QUEUE_PROPERTIES) queue->properties = properties[1];
  return queue;
}
cl_int clRetainCommandQueue(cl_command_queue queue) {
  ++queue->references;
  return CL_SUCCESS;
}
cl_int clReleaseCommandQueue(cl_command_queue queue) { return ReleaseObject(queue); }
cl_int clFlush(cl_command_queue) { return CL_SUCCESS; }
cl_int clFinish(cl_command_queue queue) { return queue->Finish(); }

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* memory, const void* pattern,
                           size_t pattern_size, size_t size, cl_uint, const cl_event*,
                           cl_event* event) {
  if (pattern_size != 1 || size == 0) return CL_INVALID_VALUE;
  const int value = *static_cast<const unsigned char*>(pattern);
  const auto fill = [=] {
    std::memset(memory, value, size);
    TheControl().time.HasCopied();
  };
  return queue->Push([=] { return Working(fill); }, false, event);
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                          size_t size, cl_uint, const cl_event*, cl_event* event) {
  if (to == nullptr || from == nullptr) return CL_INVALID_VALUE;
  const char* a = static_cast<const char*>(to);
  const char* b = static_cast<const char*>(from);
  if (a < b + size && b < a + size) return CL_MEM_COPY_OVERLAP;
  ++TheControl().copies;
  const auto copy = [=] {
    std::memcpy(to, from, size);
    TheControl().time.HasCopied();
  };
  return queue->Push([=] { return Working(copy); }, blocking == CL_TRUE, event);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t*, const size_t* global, const size_t* local, cl_uint,
                              const cl_event*, cl_event* event) {
  std::function<cl_int()> run;
  if (const int code = kernel->Launch(dimensions, global, local, &run)) return code;
  if (const int code = TheControl().next_launch_refused.exchange(0)) return code;
  const int end = TheControl().next_launch_fails.exchange(0);
  ++TheControl().launches_enqueued;
  return queue->Push(
      [end, run = std::move(run)] {
        const cl_int status = run();
        return end != 0 ? end : status;
      },
      false, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint, const cl_event*,
                                   cl_event* event) {
  return queue->Push([] { return Working([] {}); }, false, event);
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  bool failed = false;
  for (cl_uint i = 0; i < count; ++i) failed = events[i]->Wait() < 0 || failed;
  return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}
cl_int clRetainEvent(cl_event event) {
  ++event->references;
  return CL_SUCCESS;
}
cl_int clReleaseEvent(cl_event event) { return ReleaseObject(event); }

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t, void* value, size_t*) {
  if (what != CL_EVENT_COMMAND_EXECUTION_STATUS) return CL_INVALID_VALUE;
  std::lock_guard lock(event->mutex);
  *static_cast<cl_int*>(value) = event->status;
  return CL_SUCCESS;
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t, void* value,
                               size_t*) {
  std::lock_guard lock(event->mutex);
  if (event->status != CL_COMPLETE) return CL_PROFILING_INFO_NOT_AVAILABLE;
  *static_cast<cl_ulong*>(value) = what == CL_PROFILING_COMMAND_START ? event->start : event->end;
  return CL_SUCCESS;
}

void* clSVMAlloc(cl_context, cl_svm_mem_flags, size_t size, cl_uint alignment) {
  if (TheControl().out_of_memory) return nullptr;
  ++TheControl().objects;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void clSVMFree(cl_context, void* memory) {
  --TheControl().objects;
  std::free(memory);
}

}  // extern "C"
