// What everything of one device shares until it is lost: the library, CUDA's primary context with
// its streams, and whether it still works. A device that is revived gets a new one of these.
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
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

class Context;

// Pinned memory of a context's, given back in the end. The context must outlive it.
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

// Thread-safe. Shared by the device with its buffers, kernels and lists, which may outlive it.
class Context {
 public:
  static absl::StatusOr<std::shared_ptr<Context>> Make(std::shared_ptr<const Library> cuda,
                                                       CUdevice device);
  ~Context();

  // Has CUDA destroy a lost context with all that it has: memory, streams, kernels, graphs. From
  // here on nothing of it is used or given back any more, since the context that is made next may
  // have the same handles and addresses. Everything submitted has ended.
  void Abandon();

  const Library& cuda() const { return *cuda_; }
  const std::shared_ptr<const Library>& shared_cuda() const { return cuda_; }
  CUdevice device() const { return device_; }
  CUcontext get() const { return context_; }
  // Of lists, and of copies between host and device. Neither waits for the default stream.
  CUstream list_stream() const { return list_stream_; }
  CUstream copy_stream() const { return copy_stream_; }

  // Makes it the calling thread's context for as long as it lives. Calls of CUDA's need one. For
  // what is submitted, and within a Use.
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

  // The same for what may come at any time, also while the context is abandoned: that waits. Not
  // within another Use.
  class Use {
   public:
    explicit Use(const Context& context) ABSL_NO_THREAD_SAFETY_ANALYSIS
        : lock_(&context.abandon_mutex_) {
      if (!context.abandoned_) current_.emplace(context);
    }
    // If not, nothing may be called, and there is nothing to give back.
    bool ok() const { return current_.has_value(); }

   private:
    const absl::ReaderMutexLock lock_;
    std::optional<Current> current_;
  };

  // Null if there is no memory, or if the device is lost, which Health then says.
  void* AllocateMemory(int64_t bytes);
  void ReleaseMemory(void* memory) const;
  // The host's, which the device reaches by itself, pinned for as long as the caller has it.
  absl::StatusOr<char*> AllocateHostMemory(size_t bytes);
  void ReleaseHostMemory(char* memory) const;

  // The error for a call of CUDA's that failed (`what` as for ToStatus): UNAVAILABLE if the device
  // is lost, and from then on for ever.
  absl::Status Failure(absl::string_view what, CUresult code);

  // OK, or why the device is lost, as far as calls have met it.
  absl::Status Health() const;
  // The same, but asks CUDA as well. Waits for nothing.
  absl::Status AskHealth();
  // Fills a few bytes of the device and reads them back: an error means that it is lost.
  absl::Status Try();

  // An event that measures time; waiting for it sleeps. From those given back, if there are any.
  absl::StatusOr<CUevent> TakeEvent();
  void GiveBack(CUevent event);

  // The same for a moment, at least `bytes`, for what is submitted. From what was given back, if it
  // is large enough: there is never more of it than was taken at once.
  absl::StatusOr<PinnedBlock> TakePinned(size_t bytes);
  void GiveBack(char* pinned, size_t bytes);

 private:
  Context(std::shared_ptr<const Library> cuda, CUdevice device)
      : cuda_(std::move(cuda)), device_(device) {}
  // What CUDA says when it is asked for nothing; what only means that a stream is busy is OK.
  CUresult Ask() const;
  absl::Status Lose(absl::string_view why);
  absl::Status Lose(absl::string_view what, CUresult code);
  CUresult FillAndReadBack(bool* same) const;

  const std::shared_ptr<const Library> cuda_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  CUstream list_stream_ = nullptr;
  CUstream copy_stream_ = nullptr;

  mutable absl::Mutex abandon_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(abandon_mutex_) = false;
  mutable absl::Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  // That nobody uses.
  std::vector<CUevent> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<char*, size_t>> pinned_ ABSL_GUARDED_BY(mutex_);
};

// One of the context's events, given back in the end. The context must outlive it.
class Event {
 public:
  Event() = default;
  Event(Context* context, CUevent event) : context_(context), event_(event) {}
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) context_->GiveBack(event_);
  }
  CUevent get() const { return event_; }

 private:
  Context* context_ = nullptr;
  CUevent event_ = nullptr;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_CONTEXT_H_
