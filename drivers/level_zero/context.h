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
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/level_zero/device_query.h"
#include "drivers/level_zero/library.h"

namespace kiln::drivers::level_zero {

class Context;

// One of a context's fences, returned to it in the destructor. Requires: the work submitted with it
// has ended by then, and the context outlives it.
class Fence : public Completion {
 public:
  Fence() = default;
  Fence(Context* context, ze_fence_handle_t fence) : context_(context), fence_(fence) {}
  Fence(Fence&& other) noexcept { *this = std::move(other); }
  Fence& operator=(Fence&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(fence_, other.fence_);
    return *this;
  }
  ~Fence() override;
  ze_fence_handle_t get() const { return fence_; }
  absl::Status Await() override;

 private:
  Context* context_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
};

class Context : public DeviceContext {
 public:
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> ze,
                                                       const DeviceFacts& facts);
  ~Context() override;

  const Library& ze() const { return *ze_; }
  const std::shared_ptr<const Library>& shared_ze() const { return ze_; }
  const DeviceFacts& facts() const { return facts_; }
  ze_context_handle_t get() const { return context_; }
  ze_device_handle_t device() const { return facts_.device; }
  ze_command_queue_handle_t queue() const { return queue_; }

  void* AllocateMemory(int64_t bytes) override;
  void ReleaseMemory(void* memory) override;
  absl::StatusOr<char*> AllocateHostMemory(size_t bytes) override;
  void ReleaseHostMemory(char* memory) override { ReleaseMemory(memory); }

  // MakeList: a list for the queue that is recorded and closed. MakeCopyList: a list whose commands
  // start when they are appended, on the queue for copies. The caller destroys it when none of its
  // commands is left to run.
  absl::StatusOr<ze_command_list_handle_t> MakeList();
  absl::StatusOr<ze_command_list_handle_t> MakeCopyList(ze_command_queue_mode_t mode);

  // A fence that is not signalled; reuses returned ones.
  absl::StatusOr<Fence> TakeFence();
  void GiveBack(ze_fence_handle_t fence);

  // The error for a failed Level Zero call (`what` as for ToStatus): UNAVAILABLE if the device is
  // lost, which then is permanent.
  absl::Status Failure(absl::string_view what, ze_result_t code);

  absl::Status AskHealth() override;
  // Fills a few bytes of the device and reads them back.
  absl::Status Try() override;

 private:
  Context(std::shared_ptr<const Library> ze, const DeviceFacts& facts)
      : ze_(std::move(ze)), facts_(facts) {}
  // Checks that no idle fence is kept twice, and their bound.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ze_result_t FillAndReadBack(ze_command_list_handle_t list, bool* same);

  const std::shared_ptr<const Library> ze_;
  const DeviceFacts facts_;
  ze_context_handle_t context_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;

  mutable absl::Mutex mutex_;
  std::vector<ze_fence_handle_t> fences_ ABSL_GUARDED_BY(mutex_);  // unused
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_CONTEXT_H_
