#include "drivers/cuda/context.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/cuda/error.h"

namespace kiln::drivers::cuda {
namespace {

// Kept for the next use; more than lists in flight have.
constexpr size_t kMostIdleEvents = 1024;

}  // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::Make(std::shared_ptr<const Library> cuda,
                                                       CUdevice device) {
  std::shared_ptr<Context> context(new Context(std::move(cuda), device));
  const Library& library = context->cuda();
  CUresult code = library.DevicePrimaryCtxRetain(&context->context_, device);
  if (code != CUDA_SUCCESS) {
    context->context_ = nullptr;
    return ToStatus(library, "cannot make a context", code);
  }
  Current current(*context);
  for (CUstream* stream : {&context->list_stream_, &context->copy_stream_}) {
    code = library.StreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, /*priority=*/0);
    if (code != CUDA_SUCCESS) {
      *stream = nullptr;
      return ToStatus(library, "cannot make a stream", code);
    }
  }
  return context;
}

Context::~Context() {
  if (context_ == nullptr) return;
  {
    Current current(*this);
    absl::MutexLock lock(&mutex_);
    for (CUevent event : events_) cuda().EventDestroy_v2(event);
    for (CUstream stream : {list_stream_, copy_stream_}) {
      if (stream != nullptr) cuda().StreamDestroy_v2(stream);
    }
  }
  cuda().DevicePrimaryCtxRelease_v2(device_);
  // Whoever opens the device next would find it as it was lost.
  if (!Health().ok()) cuda().DevicePrimaryCtxReset_v2(device_);
}

void* Context::AllocateMemory(int64_t bytes) {
  Current current(*this);
  CUdeviceptr address = 0;
  const CUresult code = cuda().MemAlloc_v2(&address, static_cast<size_t>(bytes));
  if (code != CUDA_SUCCESS) {
    if (code != CUDA_ERROR_OUT_OF_MEMORY) Failure("cannot allocate memory", code).IgnoreError();
    return nullptr;
  }
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void Context::ReleaseMemory(void* memory) const {
  Current current(*this);
  cuda().MemFree_v2(reinterpret_cast<CUdeviceptr>(memory));
}

absl::Status Context::Failure(absl::string_view what, CUresult code) {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  if (MeansLost(code)) return Lose(what, code);
  // A call may report what an earlier one did.
  const CUresult now = Ask();
  return now == CUDA_SUCCESS ? ToStatus(cuda(), what, code) : Lose(what, now);
}

CUresult Context::Ask() const {
  // A stream of a lost context says so at once.
  Current current(*this);
  const CUresult now = cuda().StreamQuery(copy_stream_);
  return MeansLost(now) ? now : CUDA_SUCCESS;
}

absl::Status Context::Lose(absl::string_view what, CUresult code) {
  const std::string why(ToStatus(cuda(), what, code).message());
  absl::MutexLock lock(&mutex_);
  if (lost_.ok())
    lost_ = absl::UnavailableError(
        absl::StrCat("the device is lost until kilnd is started again: ", why));
  return lost_;
}

absl::Status Context::Health() const {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

absl::Status Context::AskHealth() {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  const CUresult now = Ask();
  return now == CUDA_SUCCESS ? absl::OkStatus() : Lose("it was asked how it is", now);
}

absl::StatusOr<CUevent> Context::TakeEvent() {
  {
    absl::MutexLock lock(&mutex_);
    if (!events_.empty()) {
      CUevent event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  Current current(*this);
  CUevent event = nullptr;
  const CUresult code = cuda().EventCreate(&event, CU_EVENT_BLOCKING_SYNC);
  if (code != CUDA_SUCCESS) return Failure("cannot make an event", code);
  return event;
}

void Context::GiveBack(CUevent event) {
  {
    absl::MutexLock lock(&mutex_);
    if (events_.size() < kMostIdleEvents) {
      events_.push_back(event);
      return;
    }
  }
  Current current(*this);
  cuda().EventDestroy_v2(event);
}

}  // namespace kiln::drivers::cuda
