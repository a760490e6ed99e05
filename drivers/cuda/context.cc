#include "drivers/cuda/context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/cuda/error.h"
#include "proto/check/check.h"

namespace kiln::drivers::cuda {
namespace {

// Kept for reuse; more than the lists in flight need.
constexpr size_t kIdleEventsMax = 1024;
// Pinning is slow, so blocks are large enough for most later users.
constexpr size_t kPinnedBytesMin = 64 << 10;
constexpr size_t kTrialBytes = 64;

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
    Use use(*this);
    if (!use.ok()) return;
    absl::MutexLock lock(&mutex_);
    for (CUevent event : events_) cuda().EventDestroy_v2(event);
    for (const auto& [memory, bytes] : pinned_) cuda().MemFreeHost(memory);
    for (CUstream stream : {list_stream_, copy_stream_}) {
      if (stream != nullptr) cuda().StreamDestroy_v2(stream);
    }
  }
  cuda().DevicePrimaryCtxRelease_v2(device_);
  // Otherwise the next user of the device would get the lost context.
  if (!Health().ok()) cuda().DevicePrimaryCtxReset_v2(device_);
}

void Context::Validate() const {
  KILN_CHECK_LE(events_.size(), kIdleEventsMax);
  std::set<CUevent> events;
  for (CUevent event : events_) {
    const bool is_new = events.insert(event).second;
    KILN_CHECK(event != nullptr && is_new) << "an unused event is kept twice";
  }
  std::set<const char*> blocks;
  for (const auto& [memory, bytes] : pinned_) {
    const bool is_new = blocks.insert(memory).second;
    KILN_CHECK(memory != nullptr && is_new) << "a block is kept twice";
    KILN_CHECK_GE(bytes, kPinnedBytesMin);
  }
}

void Context::Abandon() {
  absl::WriterMutexLock lock(&abandon_mutex_);
  if (abandoned_) return;
  abandoned_ = true;
  cuda().DevicePrimaryCtxRelease_v2(device_);
  // A process has one primary context for each device, which others may also hold, so releasing it
  // is not enough.
  cuda().DevicePrimaryCtxReset_v2(device_);
}

void* Context::AllocateMemory(int64_t bytes) {
  Use use(*this);
  if (!use.ok()) return nullptr;
  CUdeviceptr address = 0;
  const CUresult code = cuda().MemAlloc_v2(&address, static_cast<size_t>(bytes));
  if (code != CUDA_SUCCESS) {
    if (code != CUDA_ERROR_OUT_OF_MEMORY) Failure("cannot allocate memory", code).IgnoreError();
    return nullptr;
  }
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void Context::ReleaseMemory(void* memory) {
  Use use(*this);
  if (use.ok()) cuda().MemFree_v2(ToCuda(memory));
}

absl::StatusOr<char*> Context::AllocateHostMemory(size_t bytes) {
  Use use(*this);
  if (!use.ok()) return Health();
  void* memory = nullptr;
  const CUresult code = cuda().MemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (code == CUDA_SUCCESS) return static_cast<char*>(memory);
  return Failure(absl::StrCat("cannot pin ", bytes, " bytes of host memory"), code);
}

void Context::ReleaseHostMemory(char* memory) {
  Use use(*this);
  if (use.ok()) cuda().MemFreeHost(memory);
}

absl::Status Context::Failure(absl::string_view what, CUresult code) {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  if (MeansLost(code)) return LoseBy(what, code);
  // A call may report the error of an earlier one.
  const CUresult now = Ask();
  return now == CUDA_SUCCESS ? ToStatus(cuda(), what, code) : LoseBy(what, now);
}

CUresult Context::Ask() const {
  // A query of a stream of a lost context fails at once.
  Current current(*this);
  const CUresult now = cuda().StreamQuery(copy_stream_);
  return MeansLost(now) ? now : CUDA_SUCCESS;
}

absl::Status Context::LoseBy(absl::string_view what, CUresult code) {
  return Lose(ToStatus(cuda(), what, code).message());
}

absl::Status Context::AskHealth() {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  Use use(*this);
  if (!use.ok()) return Health();
  const CUresult now = Ask();
  return now == CUDA_SUCCESS ? absl::OkStatus() : LoseBy("its state could not be queried", now);
}

absl::Status Context::Try() {
  Use use(*this);
  if (!use.ok()) return Health();
  bool same = false;
  const CUresult code = FillAndReadBack(&same);
  if (code != CUDA_SUCCESS) return LoseBy("a test of its memory failed", code);
  return same ? absl::OkStatus() : Lose("a test of its memory read wrong values");
}

CUresult Context::FillAndReadBack(bool* same) const {
  CUdeviceptr memory = 0;
  CUresult code = cuda().MemAlloc_v2(&memory, kTrialBytes);
  if (code != CUDA_SUCCESS) return code;
  constexpr unsigned char kValue = 0x5a;
  std::array<unsigned char, kTrialBytes> back = {};
  code = cuda().MemsetD8Async(memory, kValue, kTrialBytes, copy_stream_);
  if (code == CUDA_SUCCESS)
    code = cuda().MemcpyDtoHAsync_v2(back.data(), memory, kTrialBytes, copy_stream_);
  const CUresult ended = cuda().StreamSynchronize(copy_stream_);
  cuda().MemFree_v2(memory);
  *same = back.front() == kValue && back.back() == kValue;
  return code == CUDA_SUCCESS ? ended : code;
}

absl::StatusOr<Event> Context::TakeEvent() {
  {
    absl::MutexLock lock(&mutex_);
    if (!events_.empty()) {
      CUevent event = events_.back();
      events_.pop_back();
      return Event(this, event);
    }
  }
  Current current(*this);
  CUevent event = nullptr;
  const CUresult code = cuda().EventCreate(&event, CU_EVENT_BLOCKING_SYNC);
  if (code != CUDA_SUCCESS) return Failure("cannot make an event", code);
  return Event(this, event);
}

absl::StatusOr<Event> Context::RecordEvent() {
  auto event = TakeEvent();
  if (!event.ok()) return event;
  Current current(*this);
  const CUresult code = cuda().EventRecord(event->get(), list_stream_);
  if (code != CUDA_SUCCESS) return Failure("cannot record an event", code);
  return event;
}

void Context::GiveBack(CUevent event) {
  KILN_CHECK(event != nullptr);
  {
    absl::MutexLock lock(&mutex_);
    if (events_.size() < kIdleEventsMax) {
      events_.push_back(event);
      KILN_VALIDATE(*this, events_.size() + pinned_.size());
      return;
    }
  }
  Use use(*this);
  if (use.ok()) cuda().EventDestroy_v2(event);
}

absl::StatusOr<PinnedBlock> Context::TakePinned(size_t bytes) {
  void* idle = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!pinned_.empty()) {
      const auto [memory, size] = pinned_.back();
      pinned_.pop_back();
      if (size >= bytes) return PinnedBlock(this, memory, size);
      idle = memory;
    }
  }
  Current current(*this);
  if (idle != nullptr) cuda().MemFreeHost(idle);
  const size_t size = std::max(kPinnedBytesMin, std::bit_ceil(bytes));
  void* memory = nullptr;
  const CUresult code = cuda().MemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE);
  if (code != CUDA_SUCCESS) return Failure("cannot pin host memory", code);
  return PinnedBlock(this, static_cast<char*>(memory), size);
}

void Context::GiveBack(char* pinned, size_t bytes) {
  KILN_CHECK(pinned != nullptr);
  absl::MutexLock lock(&mutex_);
  pinned_.emplace_back(pinned, bytes);
  KILN_VALIDATE(*this, events_.size() + pinned_.size());
}

Event::~Event() {
  if (event_ != nullptr) context_->GiveBack(event_);
}

absl::Status Event::Await() {
  Context::Current current(*context_);
  const CUresult code = context_->cuda().EventSynchronize(event_);
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  return context_->Failure("a command failed on the device", code);
}

double Event::SecondsUntil(const Event& end) const {
  Context::Current current(*context_);
  float milliseconds = 0;
  const CUresult code = context_->cuda().EventElapsedTime(&milliseconds, event_, end.event_);
  return code == CUDA_SUCCESS ? 1e-3 * milliseconds : 0;
}

PinnedBlock::~PinnedBlock() {
  if (memory_ != nullptr) context_->GiveBack(memory_, bytes_);
}

}  // namespace kiln::drivers::cuda
