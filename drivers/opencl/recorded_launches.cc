#include "drivers/opencl/recorded_launches.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::drivers::opencl {

void RecordedLaunches::Add(const RecordedLaunch& launch) {
  KILN_CHECK(!IsFull());
  KILN_CHECK(buffers_.empty()) << "a launch is added to recorded ones";
  launches_.push_back(launch);
}

void RecordedLaunches::Validate() const {
  KILN_CHECK_LE(launches_.size(), kLaunchesMax);
  KILN_CHECK_LE(buffers_.size(), kBuffersMax);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    KILN_CHECK(buffers_[i] != nullptr);
    for (size_t before = 0; before < i; ++before) KILN_CHECK(buffers_[before] != buffers_[i]);
  }
}

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
  if (recorded.ok()) {
    buffers_.push_back(*std::move(recorded));
    KILN_VALIDATE(*this, kBuffersMax);
    return buffers_.back();
  }
  if (absl::IsResourceExhausted(recorded.status())) {
    refused_ = true;
  } else {
    extension->Break(recorded.status());
  }
  return nullptr;
}

}  // namespace kiln::drivers::opencl
