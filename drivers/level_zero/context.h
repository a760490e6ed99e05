// The state that all objects of a device share until it is lost: the library, a Level Zero context
// with the queue for lists, and whether it still works. A revived device gets a new Context.
#ifndef KILN_DRIVERS_LEVEL_ZERO_CONTEXT_H_
#define KILN_DRIVERS_LEVEL_ZERO_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "drivers/level_zero/device_query.h"
#include "drivers/level_zero/library.h"

namespace kiln::drivers::level_zero {

class Context;

// One of a context's fences, returned to it in the destructor. Requires: the work submitted with it
// has ended by then, and the context outlives it.
class Fence {
 public:
  Fence() = default;
  Fence(Context* context, ze_fence_handle_t fence) : context_(context), fence_(fence) {}
  Fence(Fence&& other) noexcept { *this = std::move(other); }
  Fence& operator=(Fence&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(fence_, other.fence_);
    return *this;
  }
  ~Fence();
  ze_fence_handle_t get() const { return fence_; }

 private:
  Context* context_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
};

// Thread-safe. Shared by the device with its buffers, kernels and lists, which may outlive it.
class Context {
 public:
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> ze,
                                                       const DeviceFacts& facts);
  ~Context();

  const Library& ze() const { return *ze_; }
  const DeviceFacts& facts() const { return facts_; }
  ze_context_handle_t get() const { return context_; }
  ze_device_handle_t device() const { return facts_.device; }
  ze_command_queue_handle_t queue() const { return queue_; }

  // Device memory, aligned to Limits::buffer_alignment. Null if out of memory, or if the device is
  // lost; Health distinguishes the two.
  void* AllocateMemory(int64_t bytes);
  // Host memory that the device can access.
  absl::StatusOr<void*> AllocateHostMemory(size_t bytes);
  // Releases memory of either kind. Requires: nothing uses it any more.
  void ReleaseMemory(void* memory) const;

  // MakeList: a list for the queue that is recorded and closed. MakeCopyList: a list whose commands
  // start when they are appended, on the queue for copies. The caller destroys it when none of its
  // commands is left to run.
  absl::StatusOr<ze_command_list_handle_t> MakeList();
  absl::StatusOr<ze_command_list_handle_t> MakeCopyList(ze_command_queue_mode_t mode);

  // A fence that is not signalled; reuses returned ones.
  absl::StatusOr<Fence> TakeFence();
  void GiveBack(ze_fence_handle_t fence);
  // Waits for the fence. Returns the error that occurred on the device before it, if any.
  absl::Status Await(const Fence& fence);

  // The error for a failed Level Zero call (`what` as for ToStatus): UNAVAILABLE if the device is
  // lost, which then is permanent.
  absl::Status Failure(absl::string_view what, ze_result_t code);

  // OK, or why the device is lost, as far as calls have noticed.
  absl::Status Health() const;
  // The same, but also queries the driver. Does not block.
  absl::Status AskHealth();
  // Fills a few bytes of the device and reads them back; an error means that the device is lost.
  absl::Status Try();

 private:
  Context(std::shared_ptr<const Library> ze, const DeviceFacts& facts)
      : ze_(std::move(ze)), facts_(facts) {}
  absl::Status Lose(absl::string_view why);
  ze_result_t FillAndReadBack(ze_command_list_handle_t list, bool* same);

  const std::shared_ptr<const Library> ze_;
  const DeviceFacts facts_;
  ze_context_handle_t context_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;

  mutable absl::Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<ze_fence_handle_t> fences_ ABSL_GUARDED_BY(mutex_);  // unused
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_CONTEXT_H_
