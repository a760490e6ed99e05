// Copies between host and device memory through two pinned pieces: one is transferred while the
// next is copied in or out.
#ifndef KILN_DRIVERS_CUDA_STAGING_H_
#define KILN_DRIVERS_CUDA_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/cuda/context.h"

namespace kiln::drivers::cuda {

// Thread-safe; copies run one at a time.
class Staging {
 public:
  static absl::StatusOr<std::unique_ptr<Staging>> Make(std::shared_ptr<Context> context);
  ~Staging();

  // Return when the copy has ended. Run concurrently with lists, on the context's stream for
  // copies.
  absl::Status ToDevice(CUdeviceptr to, absl::Span<const char> from);
  absl::Status ToHost(absl::Span<char> to, CUdeviceptr from);

 private:
  struct Piece {
    char* memory = nullptr;  // pinned
    Event moved;             // recorded after the device has read or written it
  };

  explicit Staging(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status Fail(CUresult code);

  const std::shared_ptr<Context> context_;
  absl::Mutex mutex_;
  std::array<Piece, 2> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_STAGING_H_
