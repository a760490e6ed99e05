#include "drivers/level_zero/context.h"

#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "drivers/level_zero/error.h"
#include "proto/check/check.h"

namespace kiln::drivers::level_zero {
namespace {

// Kept for reuse; more than the lists in flight need.
constexpr size_t kIdleFencesMax = 256;
constexpr size_t kTrialBytes = 64;

ze_command_queue_desc_t QueueDesc(const QueuePlace& place, ze_command_queue_mode_t mode) {
  ze_command_queue_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
  desc.ordinal = place.ordinal;
  desc.index = place.index;
  desc.mode = mode;
  return desc;
}

}  // namespace

Fence::~Fence() {
  if (fence_ != nullptr) context_->GiveBack(fence_);
}

absl::Status Fence::Await() {
  const ze_result_t code = context_->ze().FenceHostSynchronize(fence_, UINT64_MAX);
  if (code == ZE_RESULT_SUCCESS) return absl::OkStatus();
  return context_->Failure("a command failed on the device", code);
}

absl::StatusOr<std::shared_ptr<Context>> Context::Make(std::shared_ptr<const Library> ze,
                                                       const DeviceFacts& facts) {
  std::shared_ptr<Context> context(new Context(std::move(ze), facts));
  ze_context_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  ze_result_t code = context->ze().ContextCreate(facts.driver, &desc, &context->context_);
  if (code != ZE_RESULT_SUCCESS) {
    context->context_ = nullptr;
    return ToStatus("cannot make a context", code);
  }
  const ze_command_queue_desc_t queue =
      QueueDesc(facts.list_queue, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  code =
      context->ze().CommandQueueCreate(context->context_, facts.device, &queue, &context->queue_);
  if (code != ZE_RESULT_SUCCESS) {
    context->queue_ = nullptr;
    return ToStatus("cannot make a queue", code);
  }
  return context;
}

Context::~Context() {
  {
    absl::MutexLock lock(&mutex_);
    for (ze_fence_handle_t fence : fences_) ze().FenceDestroy(fence);
  }
  if (queue_ != nullptr) ze().CommandQueueDestroy(queue_);
  if (context_ != nullptr) ze().ContextDestroy(context_);
}

void Context::Validate() const {
  KILN_CHECK_LE(fences_.size(), kIdleFencesMax);
  std::set<ze_fence_handle_t> fences;
  for (ze_fence_handle_t fence : fences_) {
    const bool is_new = fences.insert(fence).second;
    KILN_CHECK(fence != nullptr && is_new) << "an idle fence is kept twice";
  }
}

void* Context::AllocateMemory(int64_t bytes) {
  ze_device_mem_alloc_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
  void* memory = nullptr;
  const auto alignment = static_cast<size_t>(facts_.target.limits.buffer_alignment);
  const ze_result_t code = ze().MemAllocDevice(context_, &desc, static_cast<size_t>(bytes),
                                               alignment, device(), &memory);
  if (code == ZE_RESULT_SUCCESS) return memory;
  if (code != ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)
    Failure("cannot allocate memory", code).IgnoreError();
  return nullptr;
}

absl::StatusOr<char*> Context::AllocateHostMemory(size_t bytes) {
  ze_host_mem_alloc_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
  void* memory = nullptr;
  const ze_result_t code = ze().MemAllocHost(context_, &desc, bytes, sizeof(uint64_t), &memory);
  if (code == ZE_RESULT_SUCCESS) return static_cast<char*>(memory);
  return Failure(absl::StrCat("cannot allocate ", bytes, " bytes of host memory"), code);
}

void Context::ReleaseMemory(void* memory) { ze().MemFree(context_, memory); }

absl::StatusOr<ze_command_list_handle_t> Context::MakeList() {
  ze_command_list_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC;
  desc.commandQueueGroupOrdinal = facts_.list_queue.ordinal;
  ze_command_list_handle_t list = nullptr;
  const ze_result_t code = ze().CommandListCreate(context_, device(), &desc, &list);
  if (code == ZE_RESULT_SUCCESS) return list;
  return Failure("cannot make a command list", code);
}

absl::StatusOr<ze_command_list_handle_t> Context::MakeCopyList(ze_command_queue_mode_t mode) {
  const ze_command_queue_desc_t desc = QueueDesc(facts_.copy_queue, mode);
  ze_command_list_handle_t list = nullptr;
  const ze_result_t code = ze().CommandListCreateImmediate(context_, device(), &desc, &list);
  if (code == ZE_RESULT_SUCCESS) return list;
  return Failure("cannot make a command list for copies", code);
}

absl::StatusOr<Fence> Context::TakeFence() {
  {
    absl::MutexLock lock(&mutex_);
    if (!fences_.empty()) {
      ze_fence_handle_t fence = fences_.back();
      fences_.pop_back();
      return Fence(this, fence);
    }
  }
  ze_fence_desc_t desc = {};
  desc.stype = ZE_STRUCTURE_TYPE_FENCE_DESC;
  ze_fence_handle_t fence = nullptr;
  const ze_result_t code = ze().FenceCreate(queue_, &desc, &fence);
  if (code == ZE_RESULT_SUCCESS) return Fence(this, fence);
  return Failure("cannot make a fence", code);
}

void Context::GiveBack(ze_fence_handle_t fence) {
  KILN_CHECK(fence != nullptr);
  if (ze().FenceReset(fence) == ZE_RESULT_SUCCESS) {
    absl::MutexLock lock(&mutex_);
    if (fences_.size() < kIdleFencesMax) {
      fences_.push_back(fence);
      KILN_VALIDATE(*this, fences_.size());
      return;
    }
  }
  ze().FenceDestroy(fence);
}

absl::Status Context::Failure(absl::string_view what, ze_result_t code) {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  if (MeansLost(code)) return Lose(ToStatus(what, code).message());
  // A call may fail because of an earlier error.
  const ze_result_t now = ze().DeviceGetStatus(device());
  if (MeansLost(now)) return Lose(ToStatus(what, now).message());
  return ToStatus(what, code);
}

absl::Status Context::AskHealth() {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  const ze_result_t now = ze().DeviceGetStatus(device());
  if (!MeansLost(now)) return absl::OkStatus();
  return Lose(ToStatus("its state could not be queried", now).message());
}

absl::Status Context::Try() {
  auto list = MakeCopyList(ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
  if (!list.ok()) return list.status();
  bool same = false;
  const ze_result_t code = FillAndReadBack(*list, &same);
  ze().CommandListDestroy(*list);
  if (code != ZE_RESULT_SUCCESS)
    return Lose(ToStatus("a test of its memory failed", code).message());
  return same ? absl::OkStatus() : Lose("a test of its memory read wrong values");
}

ze_result_t Context::FillAndReadBack(ze_command_list_handle_t list, bool* same) {
  void* memory = AllocateMemory(kTrialBytes);
  if (memory == nullptr) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  const auto host = AllocateHostMemory(kTrialBytes);
  ze_result_t code = host.ok() ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  constexpr unsigned char kValue = 0x5a;
  if (host.ok()) std::memset(*host, 0, kTrialBytes);
  if (code == ZE_RESULT_SUCCESS) {
    code = ze().CommandListAppendMemoryFill(list, memory, &kValue, sizeof(kValue), kTrialBytes,
                                            nullptr, 0, nullptr);
  }
  if (code == ZE_RESULT_SUCCESS) code = ze().CommandListAppendBarrier(list, nullptr, 0, nullptr);
  if (code == ZE_RESULT_SUCCESS) {
    code = ze().CommandListAppendMemoryCopy(list, *host, memory, kTrialBytes, nullptr, 0, nullptr);
  }
  if (code == ZE_RESULT_SUCCESS) {
    const auto* back = reinterpret_cast<const unsigned char*>(*host);
    *same = back[0] == kValue && back[kTrialBytes - 1] == kValue;
  }
  ReleaseMemory(memory);
  if (host.ok()) ReleaseMemory(*host);
  return code;
}

}  // namespace kiln::drivers::level_zero
