// State of one run of a list while it is in flight: its slot table and its kernels' arguments, in
// host memory that the device reads, and packets that point to them. Reused by later runs.
#ifndef KILN_DRIVERS_HSA_REPLAY_H_
#define KILN_DRIVERS_HSA_REPLAY_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/queued_device/list_call.h"
#include "drivers/hsa/context.h"
#include "drivers/hsa/kernel.h"

namespace kiln::drivers::hsa {

struct Launch : ListCall {
  bool after_all = false;  // waits for all launches before it in its part of the list
  const HsaKernel& hsa_kernel() const { return static_cast<const HsaKernel&>(*kernel); }
};

class Replay {
 public:
  // `launches` must outlive it. RESOURCE_EXHAUSTED: no host memory that the device can read.
  static absl::StatusOr<std::unique_ptr<Replay>> Make(std::shared_ptr<Context> context,
                                                      absl::Span<const Launch> launches,
                                                      int num_slots);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Sets the start of each slot. Requires: one address for each; nothing that reads this replay is
  // in flight.
  void Bind(absl::Span<char* const> addresses);
  // One packet for each launch.
  absl::Span<const Packet> packets() const { return packets_; }

 private:
  Replay(std::shared_ptr<Context> context, absl::Span<const Launch> launches, size_t num_slots)
      : context_(std::move(context)), launches_(launches), num_slots_(num_slots) {}
  // Checks that each launch has a packet and arguments of its own, after the table.
  void Validate() const;
  void BuildPackets();

  const std::shared_ptr<Context> context_;
  const absl::Span<const Launch> launches_;
  const size_t num_slots_;
  char* memory_ = nullptr;        // the table, then arguments
  std::vector<int64_t> offsets_;  // of launches' arguments
  std::vector<char*> addresses_;  // by slot, as last set
  std::vector<Packet> packets_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_REPLAY_H_
