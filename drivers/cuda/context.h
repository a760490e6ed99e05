// The state that all objects of a device share until it is lost: the library, CUDA's primary
// context with its streams, and whether it still works. A revived device gets a new Context.
#ifndef KILN_DRIVERS_CUDA_CONTEXT_H_
#define KILN_DRIVERS_CUDA_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

class Context;

// A block of a context's pinned memory, returned to the context in the destructor. The context must
// outlive it.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(Context* context, char* memory, size_t bytes)
      : context_(context), memory_(memory), bytes_(bytes) {}
  PinnedBlock(PinnedBlock&& other) noexcept { *this = std::move(other); }
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedBlock();
  char* memory() const { return memory_; }

 private:
  Context* context_ = nullptr;
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

// Memory in the form in which CUDA names it.
inline CUdeviceptr ToCuda(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

// One of the context's events. The context must outlive it.
class Event : public Completion {
 public:
  Event() = default;
  Event(Context* context, CUevent event) : context_(context), event_(event) {}
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() override;
  CUevent get() const { return event_; }
  absl::Status Await() override;
  // 0 if the device does not report it.
  double SecondsUntil(const Event& end) const;

 private:
  Context* context_ = nullptr;
  CUevent event_ = nullptr;
};

class Context : public DeviceContext {
 public:
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> cuda,
                                                       CUdevice device);
  ~Context() override;

  // Destroys a lost CUDA context and everything in it: memory, streams, kernels, graphs. After this
  // nothing of it is used or released any more, since the next context may have the same handles
  // and addresses. Requires: everything submitted has ended.
  void Abandon();

  const Library& cuda() const { return *cuda_; }
  const std::shared_ptr<const Library>& shared_cuda() const { return cuda_; }
  CUdevice device() const { return device_; }
  CUcontext get() const { return context_; }
  // The streams for lists and for host-device copies. Neither waits for the default stream.
  CUstream list_stream() const { return list_stream_; }
  CUstream copy_stream() const { return copy_stream_; }

  // Makes it the calling thread's current context during this object's lifetime, as CUDA calls
  // require. For submitted work, and within a Use.
  class Current {
   public:
    explicit Current(const Context& context) : cuda_(context.cuda()) {
      cuda_.CtxPushCurrent_v2(context.get());
    }
    ~Current() {
      CUcontext popped = nullptr;
      cuda_.CtxPopCurrent_v2(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Library& cuda_;
  };

  // Like Current, for calls that may come at any time, even while the context is being abandoned:
  // Abandon waits for them. Must not be nested.
  class Use {
   public:
    explicit Use(const Context& context) ABSL_NO_THREAD_SAFETY_ANALYSIS
        : lock_(&context.abandon_mutex_) {
      if (!context.abandoned_) current_.emplace(context);
    }
    // If false, the context was abandoned: make no CUDA calls and release nothing.
    bool ok() const { return current_.has_value(); }

   private:
    const absl::ReaderMutexLock lock_;
    std::optional<Current> current_;
  };

  void* AllocateMemory(int64_t bytes) override;
  void ReleaseMemory(void* memory) override;
  absl::StatusOr<char*> AllocateHostMemory(size_t bytes) override;
  void ReleaseHostMemory(char* memory) override;

  // The error for a failed CUDA call (`what` as for ToStatus): UNAVAILABLE if the device is lost,
  // which then is permanent.
  absl::Status Failure(absl::string_view what, CUresult code);

  absl::Status AskHealth() override;
  // Fills a few bytes of the device and reads them back.
  absl::Status Try() override;

  // An event that records time; threads that wait for it sleep. Reuses returned events.
  absl::StatusOr<Event> TakeEvent();
  // The same, recorded on the stream for lists.
  absl::StatusOr<Event> RecordEvent();
  // Requires: the event was taken and is not given back twice.
  void GiveBack(CUevent event);

  // Temporary pinned memory of at least `bytes`, for submitted work. Reuses returned memory if it
  // is large enough, so there is never more of it than was in use at once.
  absl::StatusOr<PinnedBlock> TakePinned(size_t bytes);
  // Requires: the block was taken and is not given back twice.
  void GiveBack(char* pinned, size_t bytes);

 private:
  Context(std::shared_ptr<const Library> cuda, CUdevice device)
      : cuda_(std::move(cuda)), device_(device) {}
  // Checks that no unused event or block is kept twice, and the bound of the events.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A query of CUDA for errors; a busy stream counts as OK.
  CUresult Ask() const;
  absl::Status LoseBy(absl::string_view what, CUresult code);
  CUresult FillAndReadBack(bool* same) const;

  const std::shared_ptr<const Library> cuda_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  CUstream list_stream_ = nullptr;
  CUstream copy_stream_ = nullptr;

  mutable absl::Mutex abandon_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(abandon_mutex_) = false;
  mutable absl::Mutex mutex_;
  // Unused.
  std::vector<CUevent> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<char*, size_t>> pinned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_CONTEXT_H_
