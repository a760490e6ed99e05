// Packets of a queue, as defined by the Architected Queuing Language.
#ifndef KILN_DRIVERS_HSA_PACKET_H_
#define KILN_DRIVERS_HSA_PACKET_H_

#include <cstdint>

#include "drivers/hsa/api_types.h"

namespace kiln::drivers::hsa {

// A packet of either kind, 64 bytes. Both begin with a header.
union Packet {
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier;
};
static_assert(sizeof(Packet) == 64);

// `after_all`: the packet begins when all packets before it have ended.
constexpr uint16_t PacketHeader(hsa_packet_type_t type, bool after_all, hsa_fence_scope_t acquire,
                                hsa_fence_scope_t release) {
  return static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE |
                               (after_all ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                               acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                               release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

// Waits for all packets before it and, if given, for `dependency`; then decrements `completion`.
// Orders memory with the host and with copies, in both directions. Packets after it are not
// processed before it has ended.
inline Packet BarrierPacket(hsa_signal_t dependency, hsa_signal_t completion) {
  Packet packet = {.barrier = {}};
  packet.barrier.header = PacketHeader(HSA_PACKET_TYPE_BARRIER_AND, /*after_all=*/true,
                                       HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_SYSTEM);
  packet.barrier.dep_signal[0] = dependency;
  packet.barrier.completion_signal = completion;
  return packet;
}

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_PACKET_H_
