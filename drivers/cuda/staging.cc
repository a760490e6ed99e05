#include "drivers/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace kiln::drivers::cuda {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Make(std::shared_ptr<Context> context) {
  std::unique_ptr<Staging> staging(new Staging(std::move(context)));
  Context& in = *staging->context_;
  Context::Current current(in);
  absl::MutexLock lock(&staging->mutex_);
  for (Piece& piece : staging->pieces_) {
    void* memory = nullptr;
    const CUresult code = in.cuda().MemHostAlloc(&memory, kPieceBytes, CU_MEMHOSTALLOC_PORTABLE);
    if (code != CUDA_SUCCESS) return in.Failure("cannot pin host memory", code);
    piece.memory = static_cast<char*>(memory);
    const auto event = in.TakeEvent();
    if (!event.ok()) return event.status();
    piece.moved = Event(&in, *event);
  }
  return staging;
}

Staging::~Staging() {
  Context::Use use(*context_);
  if (!use.ok()) return;
  absl::MutexLock lock(&mutex_);
  for (const Piece& piece : pieces_) {
    if (piece.memory != nullptr) context_->cuda().MemFreeHost(piece.memory);
  }
}

absl::Status Staging::Fail(CUresult code) {
  // Copies still under way read or write the pieces.
  if (context_->Health().ok()) context_->cuda().StreamSynchronize(context_->copy_stream());
  return context_->Failure("a copy failed", code);
}

absl::Status Staging::ToDevice(CUdeviceptr to, absl::Span<const char> from) {
  const Library& cuda = context_->cuda();
  CUstream stream = context_->copy_stream();
  Context::Current current(*context_);
  absl::MutexLock lock(&mutex_);
  CUresult code = CUDA_SUCCESS;
  for (size_t begin = 0, i = 0; begin < from.size() && code == CUDA_SUCCESS; ++i) {
    const Piece& piece = pieces_[i % pieces_.size()];
    const size_t size = std::min(kPieceBytes, from.size() - begin);
    if (i >= pieces_.size()) code = cuda.EventSynchronize(piece.moved.get());
    if (code != CUDA_SUCCESS) break;
    std::memcpy(piece.memory, from.data() + begin, size);
    code = cuda.MemcpyHtoDAsync_v2(to + begin, piece.memory, size, stream);
    if (code == CUDA_SUCCESS) code = cuda.EventRecord(piece.moved.get(), stream);
    begin += size;
  }
  if (code == CUDA_SUCCESS) code = cuda.StreamSynchronize(stream);
  return code == CUDA_SUCCESS ? absl::OkStatus() : Fail(code);
}

absl::Status Staging::ToHost(absl::Span<char> to, CUdeviceptr from) {
  const Library& cuda = context_->cuda();
  CUstream stream = context_->copy_stream();
  Context::Current current(*context_);
  absl::MutexLock lock(&mutex_);
  CUresult code = CUDA_SUCCESS;
  const size_t count = (to.size() + kPieceBytes - 1) / kPieceBytes;
  const auto size_of = [&](size_t i) { return std::min(kPieceBytes, to.size() - i * kPieceBytes); };
  // Piece i is fetched while piece i - 1 is copied out.
  for (size_t i = 0; i <= count && code == CUDA_SUCCESS; ++i) {
    if (i < count) {
      const Piece& piece = pieces_[i % pieces_.size()];
      code = cuda.MemcpyDtoHAsync_v2(piece.memory, from + i * kPieceBytes, size_of(i), stream);
      if (code == CUDA_SUCCESS) code = cuda.EventRecord(piece.moved.get(), stream);
    }
    if (i == 0 || code != CUDA_SUCCESS) continue;
    const Piece& before = pieces_[(i - 1) % pieces_.size()];
    code = cuda.EventSynchronize(before.moved.get());
    if (code == CUDA_SUCCESS)
      std::memcpy(to.data() + (i - 1) * kPieceBytes, before.memory, size_of(i - 1));
  }
  return code == CUDA_SUCCESS ? absl::OkStatus() : Fail(code);
}

}  // namespace kiln::drivers::cuda
