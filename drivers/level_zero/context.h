// What everything of one device shares until it is lost: the library, a context of Level Zero's
// with the queue for lists, and whether it still works. A device that is revived gets a new one of
// these.
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

// One of a context's fences, given back in the end, when what was submitted with it has ended. The
// context must outlive it.
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

  // Of the device, aligned to Limits::buffer_alignment. Null if there is no memory, or if the
  // device is lost, which Health then says.
  void* AllocateMemory(int64_t bytes);
  // Of the host, where the device reaches it.
  absl::StatusOr<void*> AllocateHostMemory(size_t bytes);
  // Of either kind; nothing uses it any more.
  void ReleaseMemory(void* memory) const;

  // A list for the queue that is recorded and closed; or one whose commands start when they are
  // appended, on the queue for copies. Its owner destroys it when nothing of it is left to run.
  absl::StatusOr<ze_command_list_handle_t> MakeList();
  absl::StatusOr<ze_command_list_handle_t> MakeCopyList(ze_command_queue_mode_t mode);

  // Not signalled. From those given back, if there are any.
  absl::StatusOr<Fence> TakeFence();
  void GiveBack(ze_fence_handle_t fence);
  // Until the fence has been passed: the error that the device met before it.
  absl::Status Await(const Fence& fence);

  // The error for a call of Level Zero's that failed (`what` as for ToStatus): UNAVAILABLE if the
  // device is lost, and from then on for ever.
  absl::Status Failure(absl::string_view what, ze_result_t code);

  // OK, or why the device is lost, as far as calls have met it.
  absl::Status Health() const;
  // The same, but asks the driver as well. Waits for nothing.
  absl::Status AskHealth();
  // Fills a few bytes of the device and reads them back: an error means that it is lost.
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
  std::vector<ze_fence_handle_t> fences_ ABSL_GUARDED_BY(mutex_);  // that nobody uses
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_CONTEXT_H_
