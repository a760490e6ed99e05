#include "drivers/level_zero/staging.h"

#include <cstdint>

namespace kiln::drivers::level_zero {

absl::StatusOr<std::unique_ptr<HostCopies>> LevelZeroStaging::Make(
    std::shared_ptr<Context> context) {
  std::unique_ptr<LevelZeroStaging> staging(new LevelZeroStaging(*context, context));
  auto list = context->MakeCopyList(ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  if (!list.ok()) return list.status();
  staging->list_ = *list;
  if (absl::Status status = staging->MakeEvents(); !status.ok()) return status;
  if (absl::Status status = staging->Place(); !status.ok()) return status;
  return staging;
}

absl::Status LevelZeroStaging::MakeEvents() {
  const Library& ze = context_.ze();
  ze_event_pool_desc_t pool = {};
  pool.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
  pool.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
  pool.count = static_cast<uint32_t>(moved_.size());
  ze_device_handle_t device = context_.device();
  ze_result_t code = ze.EventPoolCreate(context_.get(), &pool, 1, &device, &pool_);
  if (code != ZE_RESULT_SUCCESS) pool_ = nullptr;
  for (uint32_t i = 0; i < moved_.size() && code == ZE_RESULT_SUCCESS; ++i) {
    ze_event_desc_t event = {};
    event.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    event.index = i;
    event.signal = event.wait = ZE_EVENT_SCOPE_FLAG_HOST;
    code = ze.EventCreate(pool_, &event, &moved_[i]);
    if (code != ZE_RESULT_SUCCESS) moved_[i] = nullptr;
  }
  if (code == ZE_RESULT_SUCCESS) return absl::OkStatus();
  return context_.Failure("cannot make events for copies", code);
}

LevelZeroStaging::~LevelZeroStaging() {
  const Library& ze = context_.ze();
  if (list_ != nullptr) ze.CommandListDestroy(list_);
  for (ze_event_handle_t event : moved_) {
    if (event != nullptr) ze.EventDestroy(event);
  }
  if (pool_ != nullptr) ze.EventPoolDestroy(pool_);
}

absl::Status LevelZeroStaging::Start(size_t piece, Direction direction, char* to, const char* from,
                                     size_t bytes) {
  const ze_result_t code =
      context_.ze().CommandListAppendMemoryCopy(list_, to, from, bytes, moved_[piece], 0, nullptr);
  return code == ZE_RESULT_SUCCESS ? absl::OkStatus() : context_.Failure("a copy failed", code);
}

absl::Status LevelZeroStaging::Await(size_t piece) {
  const Library& ze = context_.ze();
  ze_result_t code = ze.EventHostSynchronize(moved_[piece], UINT64_MAX);
  if (code == ZE_RESULT_SUCCESS) code = ze.EventHostReset(moved_[piece]);
  return code == ZE_RESULT_SUCCESS ? absl::OkStatus() : context_.Failure("a copy failed", code);
}

}  // namespace kiln::drivers::level_zero
