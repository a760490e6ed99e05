#include "drivers/hsa/staging.h"

#include <algorithm>
#include <cstring>

#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Make(std::shared_ptr<Context> context) {
  std::unique_ptr<Staging> staging(new Staging(std::move(context)));
  Context& in = *staging->context_;
  absl::MutexLock lock(&staging->mutex_);
  for (Piece& piece : staging->pieces_) {
    piece.memory = static_cast<char*>(in.AllocateHostMemory(kPieceBytes));
    if (piece.memory == nullptr)
      return absl::ResourceExhaustedError("HSA has no host memory left for copies");
    const auto signal = in.TakeSignal(0);
    if (!signal.ok()) return signal.status();
    piece.moved = Signal(&in, *signal);
  }
  return staging;
}

Staging::~Staging() {
  absl::MutexLock lock(&mutex_);
  for (const Piece& piece : pieces_) {
    if (piece.memory != nullptr) context_->ReleaseMemory(piece.memory);
  }
}

absl::Status Staging::Start(const Piece& piece, void* to, hsa_agent_t to_agent, const void* from,
                            hsa_agent_t from_agent, size_t bytes) {
  const Library& hsa = context_->hsa();
  hsa.signal_store_relaxed(piece.moved.get(), 1);
  const hsa_status_t code = hsa.amd_memory_async_copy(to, to_agent, from, from_agent, bytes, 0,
                                                      nullptr, piece.moved.get());
  if (code == HSA_STATUS_SUCCESS) return absl::OkStatus();
  hsa.signal_store_relaxed(piece.moved.get(), 0);
  if (absl::Status lost = context_->Health(); !lost.ok()) return lost;
  return ToStatus(hsa, "a copy failed", code);
}

// Waits for copies still under way, which read or write the pieces.
absl::Status Staging::Finish(absl::Status status) {
  for (const Piece& piece : pieces_) {
    const absl::Status moved = context_->Await(piece.moved.get());
    if (status.ok()) status = moved;
  }
  return status;
}

absl::Status Staging::ToDevice(char* to, absl::Span<const char> from) {
  absl::MutexLock lock(&mutex_);
  absl::Status status = context_->Health();
  for (size_t begin = 0, i = 0; begin < from.size() && status.ok(); ++i) {
    const Piece& piece = pieces_[i % pieces_.size()];
    const size_t size = std::min(kPieceBytes, from.size() - begin);
    status = context_->Await(piece.moved.get());
    if (!status.ok()) break;
    std::memcpy(piece.memory, from.data() + begin, size);
    status = Start(piece, to + begin, context_->agent(), piece.memory, context_->host(), size);
    begin += size;
  }
  return Finish(std::move(status));
}

absl::Status Staging::ToHost(absl::Span<char> to, const char* from) {
  absl::MutexLock lock(&mutex_);
  absl::Status status = context_->Health();
  const size_t count = (to.size() + kPieceBytes - 1) / kPieceBytes;
  const auto size_of = [&](size_t i) { return std::min(kPieceBytes, to.size() - i * kPieceBytes); };
  // Piece i is fetched while piece i - 1 is copied out.
  for (size_t i = 0; i <= count && status.ok(); ++i) {
    if (i < count) {
      const Piece& piece = pieces_[i % pieces_.size()];
      status = Start(piece, piece.memory, context_->host(), from + i * kPieceBytes,
                     context_->agent(), size_of(i));
    }
    if (i == 0 || !status.ok()) continue;
    const Piece& before = pieces_[(i - 1) % pieces_.size()];
    status = context_->Await(before.moved.get());
    if (status.ok()) std::memcpy(to.data() + (i - 1) * kPieceBytes, before.memory, size_of(i - 1));
  }
  return Finish(std::move(status));
}

}  // namespace kiln::drivers::hsa
