// Copies between host and device memory, on the queue for copies.
#ifndef KILN_DRIVERS_LEVEL_ZERO_STAGING_H_
#define KILN_DRIVERS_LEVEL_ZERO_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/staging.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

class LevelZeroStaging : public Staging {
 public:
  static absl::StatusOr<std::unique_ptr<HostCopies>> Make(std::shared_ptr<Context> context);
  ~LevelZeroStaging() override;

 private:
  explicit LevelZeroStaging(Context& context, std::shared_ptr<DeviceContext> owner)
      : Staging(std::move(owner)), context_(context) {}
  absl::Status MakeEvents();
  absl::Status Start(size_t piece, Direction direction, char* to, const char* from,
                     size_t bytes) override;
  absl::Status Await(size_t piece) override;

  Context& context_;
  ze_command_list_handle_t list_ = nullptr;
  ze_event_pool_handle_t pool_ = nullptr;
  // Signalled after the device has read or written a piece.
  std::array<ze_event_handle_t, kPieces> moved_ = {};
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_STAGING_H_
