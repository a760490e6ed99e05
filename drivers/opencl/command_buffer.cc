#include "drivers/opencl/command_buffer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "drivers/opencl/error.h"

namespace kiln::drivers::opencl {
namespace {

constexpr char kExtension[] = "cl_khr_command_buffer";
// CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR, added in version 0.9.6.
constexpr cl_device_info kSupportedQueueProperties = 0x129A;

bool HasExtension(const Library& cl, cl_device_id device) {
  size_t size = 0;
  if (cl.GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &size) != CL_SUCCESS) return false;
  std::string text(size, '\0');
  if (cl.GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, text.data(), nullptr) != CL_SUCCESS)
    return false;
  const std::vector<absl::string_view> names =
      absl::StrSplit(text, absl::ByAnyChar(absl::string_view(" \0", 2)));
  return std::find(names.begin(), names.end(), kExtension) != names.end();
}

// Whether it supports queues as made by Context::MakeQueue.
bool TakesOurQueues(const Library& cl, cl_device_id device) {
  constexpr cl_command_queue_properties kOurs = CL_QUEUE_PROFILING_ENABLE;
  cl_command_queue_properties required = 0;
  if (cl.GetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
                       sizeof(required), &required, nullptr) != CL_SUCCESS) {
    return false;
  }
  cl_command_queue_properties supported = kOurs;
  // Devices without this query support all queue properties.
  if (cl.GetDeviceInfo(device, kSupportedQueueProperties, sizeof(supported), &supported, nullptr) !=
      CL_SUCCESS) {
    supported = kOurs;
  }
  return (required & ~kOurs) == 0 && (kOurs & ~supported) == 0;
}

}  // namespace

std::unique_ptr<CommandBufferExtension> CommandBufferExtension::Find(const Library& cl,
                                                                     cl_device_id device,
                                                                     OnBroken on_broken) {
  if (!HasExtension(cl, device) || !TakesOurQueues(cl, device)) return nullptr;
  cl_platform_id platform = nullptr;
  cl_device_command_buffer_capabilities_khr capabilities = 0;
  if (cl.GetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, nullptr) !=
          CL_SUCCESS ||
      cl.GetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(capabilities),
                       &capabilities, nullptr) != CL_SUCCESS) {
    return nullptr;
  }
  std::unique_ptr<CommandBufferExtension> found(new CommandBufferExtension(std::move(on_broken)));
  found->simultaneous_use_ =
      (capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
  bool whole = true;
#define KILN_OPENCL_FIND(name)                                                \
  found->name = reinterpret_cast<cl##name##KHR_fn>(                           \
      cl.GetExtensionFunctionAddressForPlatform(platform, "cl" #name "KHR")); \
  whole = whole && found->name != nullptr
  KILN_OPENCL_COMMAND_BUFFER_FUNCTIONS(KILN_OPENCL_FIND);
#undef KILN_OPENCL_FIND
  return whole ? std::move(found) : nullptr;
}

void CommandBufferExtension::Break(const absl::Status& why) {
  if (works_.exchange(false) && on_broken_) on_broken_(why);
}

absl::StatusOr<std::unique_ptr<CommandBuffer>> CommandBuffer::Record(
    const Library& cl, const CommandBufferExtension& extension, cl_command_queue queue,
    absl::Span<const RecordedLaunch> launches) {
  std::unique_ptr<CommandBuffer> made(new CommandBuffer(extension));
  cl_int code = cl.RetainCommandQueue(queue);
  if (code != CL_SUCCESS) return ToStatus("cannot retain a command queue", code);
  made->queue_ = Handle<cl_command_queue>(queue, cl.ReleaseCommandQueue);
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                         CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_command_buffer_khr buffer = extension.CreateCommandBuffer(
      1, &queue, extension.simultaneous_use() ? properties : nullptr, &code);
  if (code != CL_SUCCESS) return ToStatus("cannot make a command buffer", code);
  made->buffer_ = Handle<cl_command_buffer_khr>(buffer, extension.ReleaseCommandBuffer);
  for (const RecordedLaunch& launch : launches) {
    // The queue is in order, so no explicit dependencies are needed.
    code = extension.CommandNDRangeKernel(buffer, nullptr, nullptr, launch.kernel, 1, nullptr,
                                          &launch.threads, &launch.block, 0, nullptr, nullptr,
                                          nullptr);
    if (code == CL_SUCCESS) continue;
    return ToStatus(absl::StrCat("cannot record ", launches.size(), " launches"), code);
  }
  code = extension.FinalizeCommandBuffer(buffer);
  if (code != CL_SUCCESS) return ToStatus("cannot finalize a command buffer", code);
  return made;
}

cl_int CommandBuffer::Enqueue(cl_event* event) const {
  return extension_.EnqueueCommandBuffer(0, nullptr, buffer_.get(), 0, nullptr, event);
}

}  // namespace kiln::drivers::opencl
