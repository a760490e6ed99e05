// The default way to replay a list: issue its commands one by one. For drivers whose hardware has
// nothing better.
#ifndef KILN_DRIVERS_COMMON_REISSUE_H_
#define KILN_DRIVERS_COMMON_REISSUE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/device.h"

namespace kiln::drivers {

// A SlotRange with its buffer.
struct BoundRange {
  Buffer* buffer = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// The operations that a driver must be able to issue. An error ends the list.
class CommandIssuer {
 public:
  virtual ~CommandIssuer() = default;
  virtual absl::Status Launch(const LoadedKernel& kernel,
                              absl::Span<const BoundRange> arguments) = 0;
  virtual absl::Status Copy(const BoundRange& source, const BoundRange& destination) = 0;
  virtual absl::Status Fill(const BoundRange& destination, uint8_t value) = 0;
  virtual absl::Status Signal(SignalGroup& group, int signal) = 0;
  virtual absl::Status Wait(SignalGroup& group, int signal) = 0;
};

// Immutable after construction. Requires: CheckCommandList gave `needs` for `list`.
class ReissuedList : public PreparedList {
 public:
  ReissuedList(CommandList list, ListNeeds needs);
  const ListNeeds& needs() const { return needs_; }

  // Requires: CheckSlots has accepted `slots` and `options`.
  // Issues every command in order with these buffers, which CheckSlots has accepted, and times each
  // if requested. If one fails, the rest is skipped and options.group, if any, is aborted, so that
  // no other device waits for it.
  SubmitResult Issue(absl::Span<Buffer* const> slots, const SubmitOptions& options,
                     CommandIssuer& issuer, const SteadyClock& now) const;

 private:
  const CommandList list_;
  const ListNeeds needs_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_REISSUE_H_
