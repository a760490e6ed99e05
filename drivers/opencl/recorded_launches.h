// Consecutive launches of a list, and the command buffers that repeat them.
#ifndef KILN_DRIVERS_OPENCL_RECORDED_LAUNCHES_H_
#define KILN_DRIVERS_OPENCL_RECORDED_LAUNCHES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "drivers/opencl/command_buffer.h"
#include "drivers/opencl/context.h"

namespace kiln::drivers::opencl {

// Not thread-safe.
class RecordedLaunches {
 public:
  // Fewer launches are as fast one by one, because a command buffer at the start of a list needs a
  // marker.
  static constexpr size_t kLaunchesMin = 4;
  // Longer sequences are split. This bounds what a vendor's library keeps for each command buffer,
  // some of it on the stack.
  static constexpr size_t kLaunchesMax = 4096;
  // Command buffers for the same launches, if one may not be enqueued while it runs: the number of
  // lists that a device has in flight.
  static constexpr size_t kBuffersMax = 4;

  // `begin`: the number of the first call.
  explicit RecordedLaunches(size_t begin) : begin_(begin) {}
  // Requires: it is not full, and has no command buffer yet.
  void Add(const RecordedLaunch& launch);
  bool IsFull() const { return launches_.size() == kLaunchesMax; }
  bool IsWorthIt() const { return launches_.size() >= kLaunchesMin; }

  size_t begin() const { return begin_; }
  size_t end() const { return begin_ + launches_.size(); }

  // Returns a command buffer that may be enqueued; the submission keeps the reference until it has
  // ended. Records a new one if all others are taken. Null: the caller enqueues the launches one by
  // one, because all command buffers are in use, or recording has failed, which is not retried.
  std::shared_ptr<const CommandBuffer> Take(const Context& context, cl_command_queue queue);

  // Call this when other memory was named to the kernels, which the recorded ones do not know.
  void Forget() { buffers_.clear(); }

 private:
  // Checks the bounds, and that no command buffer is kept twice.
  void Validate() const;

  size_t begin_;
  std::vector<RecordedLaunch> launches_;
  std::vector<std::shared_ptr<const CommandBuffer>> buffers_;
  bool refused_ = false;  // out of memory, or too many launches
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_RECORDED_LAUNCHES_H_
