#include "drivers/level_zero/staging.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kiln::drivers::level_zero {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Make(std::shared_ptr<Context> context) {
  std::unique_ptr<Staging> staging(new Staging(std::move(context)));
  absl::MutexLock lock(&staging->mutex_);
  if (absl::Status status = staging->MakeParts(); !status.ok()) return status;
  return staging;
}

absl::Status Staging::MakeParts() {
  const Library& ze = context_->ze();
  auto list = context_->MakeCopyList(ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  if (!list.ok()) return list.status();
  list_ = *list;
  ze_event_pool_desc_t pool = {};
  pool.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
  pool.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
  pool.count = static_cast<uint32_t>(pieces_.size());
  ze_device_handle_t device = context_->device();
  ze_result_t code = ze.EventPoolCreate(context_->get(), &pool, 1, &device, &pool_);
  if (code != ZE_RESULT_SUCCESS) {
    pool_ = nullptr;
    return context_->Failure("cannot make events for copies", code);
  }
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    ze_event_desc_t event = {};
    event.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    event.index = i;
    event.signal = event.wait = ZE_EVENT_SCOPE_FLAG_HOST;
    code = ze.EventCreate(pool_, &event, &pieces_[i].moved);
    if (code != ZE_RESULT_SUCCESS) {
      pieces_[i].moved = nullptr;
      return context_->Failure("cannot make an event for copies", code);
    }
    auto memory = context_->AllocateHostMemory(kPieceBytes);
    if (!memory.ok()) return memory.status();
    pieces_[i].memory = static_cast<char*>(*memory);
  }
  return absl::OkStatus();
}

Staging::~Staging() {
  const Library& ze = context_->ze();
  absl::MutexLock lock(&mutex_);
  if (list_ != nullptr) ze.CommandListDestroy(list_);
  for (const Piece& piece : pieces_) {
    if (piece.moved != nullptr) ze.EventDestroy(piece.moved);
    if (piece.memory != nullptr) context_->ReleaseMemory(piece.memory);
  }
  if (pool_ != nullptr) ze.EventPoolDestroy(pool_);
}

ze_result_t Staging::Start(Piece& piece, void* to, const void* from, size_t bytes) {
  const ze_result_t code =
      context_->ze().CommandListAppendMemoryCopy(list_, to, from, bytes, piece.moved, 0, nullptr);
  piece.in_flight = code == ZE_RESULT_SUCCESS;
  return code;
}

ze_result_t Staging::Await(Piece& piece) {
  if (!piece.in_flight) return ZE_RESULT_SUCCESS;
  const Library& ze = context_->ze();
  piece.in_flight = false;
  const ze_result_t code = ze.EventHostSynchronize(piece.moved, UINT64_MAX);
  return code == ZE_RESULT_SUCCESS ? ze.EventHostReset(piece.moved) : code;
}

absl::Status Staging::End(ze_result_t code) {
  for (Piece& piece : pieces_) {
    const ze_result_t ended = Await(piece);
    if (code == ZE_RESULT_SUCCESS) code = ended;
  }
  return code == ZE_RESULT_SUCCESS ? absl::OkStatus() : context_->Failure("a copy failed", code);
}

absl::Status Staging::ToDevice(char* to, absl::Span<const char> from) {
  absl::MutexLock lock(&mutex_);
  ze_result_t code = ZE_RESULT_SUCCESS;
  for (size_t begin = 0, i = 0; begin < from.size() && code == ZE_RESULT_SUCCESS; ++i) {
    Piece& piece = pieces_[i % pieces_.size()];
    const size_t size = std::min(kPieceBytes, from.size() - begin);
    code = Await(piece);
    if (code != ZE_RESULT_SUCCESS) break;
    std::memcpy(piece.memory, from.data() + begin, size);
    code = Start(piece, to + begin, piece.memory, size);
    begin += size;
  }
  return End(code);
}

absl::Status Staging::ToHost(absl::Span<char> to, const char* from) {
  absl::MutexLock lock(&mutex_);
  ze_result_t code = ZE_RESULT_SUCCESS;
  const size_t count = (to.size() + kPieceBytes - 1) / kPieceBytes;
  const auto size_of = [&](size_t i) { return std::min(kPieceBytes, to.size() - i * kPieceBytes); };
  // Piece i is fetched while piece i - 1 is copied out.
  for (size_t i = 0; i <= count && code == ZE_RESULT_SUCCESS; ++i) {
    if (i < count) {
      Piece& piece = pieces_[i % pieces_.size()];
      code = Start(piece, piece.memory, from + i * kPieceBytes, size_of(i));
    }
    if (i == 0 || code != ZE_RESULT_SUCCESS) continue;
    Piece& before = pieces_[(i - 1) % pieces_.size()];
    code = Await(before);
    if (code == ZE_RESULT_SUCCESS)
      std::memcpy(to.data() + (i - 1) * kPieceBytes, before.memory, size_of(i - 1));
  }
  return End(code);
}

}  // namespace kiln::drivers::level_zero
