// Launches that stand together in a list, and the command buffers that repeat them.
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
  // Fewer are enqueued as quickly one by one: a command buffer at a list's begin costs a marker.
  static constexpr size_t kLaunchesMin = 4;
  // A list with more has several. What a vendor's library holds for each launch, some of it on the
  // stack, is its own affair.
  static constexpr size_t kLaunchesMax = 4096;
  // Of the same launches, where one may not be enqueued while it runs: as many as a device has
  // lists in flight.
  static constexpr size_t kBuffersMax = 4;

  // `begin`: the number of the first call.
  explicit RecordedLaunches(size_t begin) : begin_(begin) {}
  void Add(const RecordedLaunch& launch) { launches_.push_back(launch); }
  bool IsFull() const { return launches_.size() == kLaunchesMax; }
  bool IsWorthIt() const { return launches_.size() >= kLaunchesMin; }

  size_t begin() const { return begin_; }
  size_t end() const { return begin_ + launches_.size(); }

  // A command buffer that may be enqueued, which the submission holds until it has ended. Records
  // one if all others are held. Null: the launches are to be enqueued one by one, because
  // everything is in use, or recording has failed and is not tried again.
  std::shared_ptr<const CommandBuffer> Take(const Context& context, cl_command_queue queue);

  // The kernels were told of other memory, which those that are recorded know nothing of.
  void Forget() { buffers_.clear(); }

 private:
  size_t begin_;
  std::vector<RecordedLaunch> launches_;
  std::vector<std::shared_ptr<const CommandBuffer>> buffers_;
  bool refused_ = false;  // for want of memory or for their number
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_RECORDED_LAUNCHES_H_
