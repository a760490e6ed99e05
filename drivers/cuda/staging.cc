#include "drivers/cuda/staging.h"

namespace kiln::drivers::cuda {

absl::StatusOr<std::unique_ptr<HostCopies>> CudaStaging::Make(std::shared_ptr<Context> context) {
  std::unique_ptr<CudaStaging> staging(new CudaStaging(*context, context));
  for (Event& moved : staging->moved_) {
    auto event = context->TakeEvent();
    if (!event.ok()) return event.status();
    moved = *std::move(event);
  }
  if (absl::Status status = staging->Place(); !status.ok()) return status;
  return staging;
}

absl::Status CudaStaging::Start(size_t piece, Direction direction, char* to, const char* from,
                                size_t bytes) {
  const Library& cuda = context_.cuda();
  CUstream stream = context_.copy_stream();
  Context::Current current(context_);
  CUresult code = direction == Direction::kToDevice
                      ? cuda.MemcpyHtoDAsync_v2(ToCuda(to), from, bytes, stream)
                      : cuda.MemcpyDtoHAsync_v2(to, ToCuda(from), bytes, stream);
  if (code != CUDA_SUCCESS) return context_.Failure("a copy failed", code);
  code = cuda.EventRecord(moved_[piece].get(), stream);
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  // The copy may be under way, without an event to wait for.
  cuda.StreamSynchronize(stream);
  return context_.Failure("a copy failed", code);
}

}  // namespace kiln::drivers::cuda
