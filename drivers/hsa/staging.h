// Copies between host and device memory, on the device's copy engines.
#ifndef KILN_DRIVERS_HSA_STAGING_H_
#define KILN_DRIVERS_HSA_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/staging.h"
#include "drivers/hsa/context.h"

namespace kiln::drivers::hsa {

class HsaStaging : public Staging {
 public:
  static absl::StatusOr<std::unique_ptr<HostCopies>> Make(std::shared_ptr<Context> context);

 private:
  HsaStaging(Context& context, std::shared_ptr<DeviceContext> owner)
      : Staging(std::move(owner)), context_(context) {}
  absl::Status Start(size_t piece, Direction direction, char* to, const char* from,
                     size_t bytes) override;
  absl::Status Await(size_t piece) override { return moved_[piece].Await(); }

  Context& context_;
  std::array<Signal, kPieces> moved_;  // 1 while the device reads or writes the piece
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_STAGING_H_
