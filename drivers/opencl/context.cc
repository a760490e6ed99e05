#include "drivers/opencl/context.h"

#include <utility>

#include "drivers/opencl/device_query.h"
#include "drivers/opencl/error.h"

namespace kiln::drivers::opencl {
namespace {

constexpr size_t kTrialBytes = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::Make(
    std::shared_ptr<const Library> cl, cl_device_id device,
    std::unique_ptr<CommandBufferExtension> command_buffers) {
  std::shared_ptr<Context> context(new Context(std::move(cl), device));
  context->command_buffers_ = std::move(command_buffers);
  cl_int code = CL_SUCCESS;
  cl_context made = context->cl().CreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return ToStatus("cannot make an OpenCL context", code);
  context->context_ = Handle<cl_context>(made, context->cl().ReleaseContext);
  cl_device_svm_capabilities svm = 0;
  context->cl().GetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, nullptr);
  context->wants_memory_named_ = (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) == 0;
  for (Handle<cl_command_queue>* queue : {&context->list_queue_, &context->trial_queue_}) {
    auto queue_made = context->MakeQueue();
    if (!queue_made.ok()) return queue_made.status();
    *queue = *std::move(queue_made);
  }
  context->trial_memory_ = context->AllocateMemory(kTrialBytes);
  if (context->trial_memory_ == nullptr)
    return absl::ResourceExhaustedError("the device has no shared virtual memory left");
  return context;
}

Context::~Context() {
  if (trial_memory_ != nullptr) ReleaseMemory(trial_memory_);
}

absl::StatusOr<Handle<cl_command_queue>> Context::MakeQueue() const {
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = cl().CreateCommandQueueWithProperties(get(), device_, properties, &code);
  if (code != CL_SUCCESS) return ToStatus("cannot make a command queue", code);
  return Handle<cl_command_queue>(queue, cl().ReleaseCommandQueue);
}

void* Context::AllocateMemory(int64_t bytes) {
  return cl().SVMAlloc(get(), CL_MEM_READ_WRITE, static_cast<size_t>(bytes), kAlignment);
}

void Context::ReleaseMemory(void* memory) {
  ++releases_;
  cl().SVMFree(get(), memory);
}

bool Context::DeviceWorks() {
  absl::MutexLock lock(&trial_mutex_);
  const uint8_t value = 0x5a;
  uint8_t back[kTrialBytes] = {};
  cl_command_queue queue = trial_queue_.get();
  cl_int code =
      cl().EnqueueSVMMemFill(queue, trial_memory_, &value, 1, kTrialBytes, 0, nullptr, nullptr);
  if (code != CL_SUCCESS) return false;
  code =
      cl().EnqueueSVMMemcpy(queue, CL_TRUE, back, trial_memory_, kTrialBytes, 0, nullptr, nullptr);
  return code == CL_SUCCESS && back[0] == value && back[kTrialBytes - 1] == value;
}

absl::Status Context::Failure(absl::string_view what, cl_int code) {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  const absl::Status failure = ToStatus(what, code);
  // Vendors report a fault in a kernel with codes that can also mean out of memory.
  if (!MeansLost(code) && DeviceWorks()) return failure;
  return Lose(failure.message());
}

absl::Status Context::AskHealth() {
  return IsAvailable(cl(), device_) ? Health() : Lose("it is no longer available");
}

absl::Status Context::Try() {
  return DeviceWorks() ? Health() : Lose("a test of its memory failed");
}

absl::Status Event::Await(Context& context, cl_event event) {
  if (event == nullptr) return absl::OkStatus();
  const Library& cl = context.cl();
  const cl_int waited = cl.WaitForEvents(1, &event);
  cl_int status = CL_COMPLETE;
  const cl_int asked =
      cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  // The event's own error is more specific than the error of waiting.
  const cl_int code = asked == CL_SUCCESS && status < 0 ? status : waited;
  if (code == CL_SUCCESS) return absl::OkStatus();
  return context.Failure("a command failed on the device", code);
}

double Event::SecondsBetween(const Context& context, cl_event from, cl_profiling_info edge,
                             cl_event to) {
  const auto read = [&context](cl_event event, cl_profiling_info what, cl_ulong* nanoseconds) {
    return context.cl().GetEventProfilingInfo(event, what, sizeof(*nanoseconds), nanoseconds,
                                              nullptr) == CL_SUCCESS;
  };
  cl_ulong begin = 0, end = 0;
  const bool known =
      read(from, edge, &begin) && read(to, CL_PROFILING_COMMAND_END, &end) && end >= begin;
  // Subtracts before converting to double, which could not hold a large timestamp exactly.
  return known ? static_cast<double>(end - begin) * 1e-9 : 0.0;
}

}  // namespace kiln::drivers::opencl
