// Copies between host and device memory through two pieces of host memory that the device reads and
// writes: one is transferred while the next is copied in or out.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_STAGING_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/common/queued_device/vendor_device.h"

namespace kiln::drivers {

// Thread-safe.
class Staging : public HostCopies {
 public:
  static constexpr size_t kPieces = 2;
  ~Staging() override;

  absl::Status ToDevice(char* to, absl::Span<const char> from) override;
  absl::Status ToHost(absl::Span<char> to, const char* from) override;

 protected:
  enum class Direction : uint8_t { kToDevice, kToHost };

  explicit Staging(std::shared_ptr<DeviceContext> context) : owner_(std::move(context)) {}
  // Allocates the pieces' memory.
  absl::Status Place() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Piece {
    size_t number = 0;
    char* memory = nullptr;
    bool in_flight = false;
  };

  // Starts the transfer of a piece; one side is the piece's memory. If it fails, no transfer is
  // under way.
  virtual absl::Status Start(size_t piece, Direction direction, char* to, const char* from,
                             size_t bytes) = 0;
  // Waits for the piece's transfer.
  virtual absl::Status Await(size_t piece) = 0;

  // Checks that every piece has memory and its own number, and that none is in flight, as between
  // two copies.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: the piece is not in flight, and has room for `bytes`.
  absl::Status StartPiece(Piece& piece, Direction direction, char* to, const char* from,
                          size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitPiece(Piece& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a copy: waits for transfers still under way, which read or write the pieces.
  absl::Status End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<DeviceContext> owner_;
  absl::Mutex mutex_;
  std::array<Piece, kPieces> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_STAGING_H_
