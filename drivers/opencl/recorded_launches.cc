#include "drivers/opencl/recorded_launches.h"

#include <utility>

namespace kiln::drivers::opencl {

std::shared_ptr<const CommandBuffer> RecordedLaunches::Take(const Context& context,
                                                            cl_command_queue queue) {
  CommandBufferExtension* const extension = context.command_buffers();
  if (extension == nullptr || !extension->works()) return nullptr;
  for (const auto& buffer : buffers_) {
    // Other threads only release buffers that this thread has taken, so a count of 1 stays 1.
    if (extension->simultaneous_use() || buffer.use_count() == 1) return buffer;
  }
  if (refused_ || buffers_.size() == kBuffersMax) return nullptr;
  auto recorded = CommandBuffer::Record(context.cl(), *extension, queue, launches_);
  if (recorded.ok()) return buffers_.emplace_back(*std::move(recorded));
  if (absl::IsResourceExhausted(recorded.status())) {
    refused_ = true;
  } else {
    extension->Break(recorded.status());
  }
  return nullptr;
}

}  // namespace kiln::drivers::opencl
