// Copies between host and device memory, on the context's stream for copies.
#ifndef KILN_DRIVERS_CUDA_STAGING_H_
#define KILN_DRIVERS_CUDA_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/staging.h"
#include "drivers/cuda/context.h"

namespace kiln::drivers::cuda {

class CudaStaging : public Staging {
 public:
  static absl::StatusOr<std::unique_ptr<HostCopies>> Make(std::shared_ptr<Context> context);

 private:
  explicit CudaStaging(Context& context, std::shared_ptr<DeviceContext> owner)
      : Staging(std::move(owner)), context_(context) {}
  absl::Status Start(size_t piece, Direction direction, char* to, const char* from,
                     size_t bytes) override;
  absl::Status Await(size_t piece) override { return moved_[piece].Await(); }

  Context& context_;
  std::array<Event, kPieces> moved_;  // recorded after the device has read or written a piece
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_STAGING_H_
