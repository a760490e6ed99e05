#include "drivers/opencl/context.h"

#include <utility>

#include "absl/strings/str_cat.h"
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
  auto queue = context->MakeQueue();
  if (!queue.ok()) return queue.status();
  context->trial_queue_ = *std::move(queue);
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

void* Context::AllocateMemory(int64_t bytes) const {
  return cl().SVMAlloc(get(), CL_MEM_READ_WRITE, static_cast<size_t>(bytes), kAlignment);
}

void Context::ReleaseMemory(void* memory) const {
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
  Lose(failure.message());
  return Health();
}

void Context::Lose(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  // The first reason explains the later ones.
  if (lost_.ok()) lost_ = absl::UnavailableError(absl::StrCat("the device is lost: ", why));
}

absl::Status Context::Try() {
  if (!DeviceWorks()) Lose("a test of its memory failed");
  return Health();
}

absl::Status Context::Health() const {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

}  // namespace kiln::drivers::opencl
