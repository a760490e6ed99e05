// Copies between host and device memory through two pieces of host memory that the device can
// access: one is transferred while the next is copied in or out.
#ifndef KILN_DRIVERS_LEVEL_ZERO_STAGING_H_
#define KILN_DRIVERS_LEVEL_ZERO_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

// Thread-safe; copies run one at a time.
class Staging {
 public:
  static absl::StatusOr<std::unique_ptr<Staging>> Make(std::shared_ptr<Context> context);
  ~Staging();

  // Return when the copy has ended. Run concurrently with lists, on the queue for copies.
  absl::Status ToDevice(char* to, absl::Span<const char> from);
  absl::Status ToHost(absl::Span<char> to, const char* from);

 private:
  struct Piece {
    char* memory = nullptr;
    ze_event_handle_t moved = nullptr;  // signalled after the device has read or written it
    bool in_flight = false;
  };

  explicit Staging(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status MakeParts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ze_result_t Start(Piece& piece, void* to, const void* from, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ze_result_t Await(Piece& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a copy: waits for its remaining pieces.
  absl::Status End(ze_result_t code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Context> context_;
  absl::Mutex mutex_;
  ze_command_list_handle_t list_ ABSL_GUARDED_BY(mutex_) = nullptr;
  ze_event_pool_handle_t pool_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::array<Piece, 2> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_STAGING_H_
