// Copies between host and device memory through two pieces of host memory that the device can
// access: one is transferred while the next is copied in or out.
#ifndef KILN_DRIVERS_HSA_STAGING_H_
#define KILN_DRIVERS_HSA_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/hsa/context.h"

namespace kiln::drivers::hsa {

// Thread-safe; copies run one at a time.
class Staging {
 public:
  static absl::StatusOr<std::unique_ptr<Staging>> Make(std::shared_ptr<Context> context);
  ~Staging();

  // Return when the copy has ended. Run concurrently with lists, on the device's copy engines.
  absl::Status ToDevice(char* to, absl::Span<const char> from);
  absl::Status ToHost(absl::Span<char> to, const char* from);

 private:
  struct Piece {
    char* memory = nullptr;  // host memory
    Signal moved;            // 1 while the device reads or writes it
  };

  explicit Staging(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status Start(const Piece& piece, void* to, hsa_agent_t to_agent, const void* from,
                     hsa_agent_t from_agent, size_t bytes);
  absl::Status Finish(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Context> context_;
  absl::Mutex mutex_;
  std::array<Piece, 2> pieces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_STAGING_H_
