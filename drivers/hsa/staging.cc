#include "drivers/hsa/staging.h"

#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {

absl::StatusOr<std::unique_ptr<HostCopies>> HsaStaging::Make(std::shared_ptr<Context> context) {
  std::unique_ptr<HsaStaging> staging(new HsaStaging(*context, context));
  if (absl::Status status = staging->Place(); !status.ok()) return status;
  for (Signal& moved : staging->moved_) {
    auto signal = context->TakeSignal(0);
    if (!signal.ok()) return signal.status();
    moved = *std::move(signal);
  }
  return staging;
}

absl::Status HsaStaging::Start(size_t piece, Direction direction, char* to, const char* from,
                               size_t bytes) {
  if (absl::Status lost = context_.Health(); !lost.ok()) return lost;
  const bool to_device = direction == Direction::kToDevice;
  const Library& hsa = context_.hsa();
  const hsa_signal_t moved = moved_[piece].get();
  hsa.signal_store_relaxed(moved, 1);
  const hsa_status_t code = hsa.amd_memory_async_copy(
      to, to_device ? context_.agent() : context_.host(), from,
      to_device ? context_.host() : context_.agent(), bytes, 0, nullptr, moved);
  if (code == HSA_STATUS_SUCCESS) return absl::OkStatus();
  hsa.signal_store_relaxed(moved, 0);
  return context_.Failure("a copy failed", code);
}

}  // namespace kiln::drivers::hsa
