#include "drivers/hsa/replay.h"

#include <algorithm>
#include <cstring>

#include "proto/check/check.h"

namespace kiln::drivers::hsa {
namespace {

// Alignment of arguments: HSA requires 16; separate cache lines avoid sharing.
constexpr int64_t kArgumentsAlignment = 64;

int64_t RoundUp(int64_t bytes) {
  return (bytes + kArgumentsAlignment - 1) / kArgumentsAlignment * kArgumentsAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replay>> Replay::Make(std::shared_ptr<Context> context,
                                                     absl::Span<const Launch> launches,
                                                     int num_slots) {
  std::unique_ptr<Replay> replay(
      new Replay(std::move(context), launches, static_cast<size_t>(num_slots)));
  int64_t bytes = RoundUp(int64_t{8} * std::max(num_slots, 1));
  for (const Launch& launch : launches) {
    replay->offsets_.push_back(bytes);
    bytes += RoundUp(std::max<int64_t>(launch.hsa_kernel().argument_bytes(), 1));
  }
  const auto memory = replay->context_->AllocateHostMemory(static_cast<size_t>(bytes));
  if (!memory.ok()) return memory.status();
  replay->memory_ = *memory;
  replay->BuildPackets();
  // As much work as building it.
  KILN_VALIDATE(*replay, 1);
  return replay;
}

void Replay::Validate() const {
  KILN_CHECK(memory_ != nullptr);
  KILN_CHECK_EQ(offsets_.size(), launches_.size());
  KILN_CHECK_EQ(packets_.size(), launches_.size());
  int64_t end = static_cast<int64_t>(num_slots_ * sizeof(char*));
  for (size_t i = 0; i < offsets_.size(); ++i) {
    KILN_CHECK_EQ(offsets_[i] % kArgumentsAlignment, 0);
    KILN_CHECK_GE(offsets_[i], end) << "arguments of launch " << i;
    end = offsets_[i] + launches_[i].hsa_kernel().argument_bytes();
    KILN_CHECK(packets_[i].dispatch.kernarg_address == memory_ + offsets_[i]) << "launch " << i;
  }
}

Replay::~Replay() {
  if (memory_ != nullptr) context_->ReleaseHostMemory(memory_);
}

void Replay::BuildPackets() {
  const auto table = reinterpret_cast<uint64_t>(memory_);
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Launch& launch = launches_[i];
    const KernelImage& image = launch.kernel->image();
    char* const arguments = memory_ + offsets_[i];
    if (image.takes_slot_table) {
      std::vector<uint64_t> numbers = {table};
      for (const auto& [range, access] : launch.operands)
        numbers.push_back(PackSlot(range.slot, range.offset));
      std::memcpy(arguments, numbers.data(), numbers.size() * sizeof(uint64_t));
    }
    if (image.runs_parts) {
      const auto first = static_cast<uint64_t>(launch.points.begin);
      std::memcpy(arguments + launch.hsa_kernel().argument_bytes() - sizeof(first), &first,
                  sizeof(first));
    }
    Packet packet = {.dispatch = {}};
    hsa_kernel_dispatch_packet_t& dispatch = packet.dispatch;
    // Packets with a barrier bit see the writes of the host and of copies; the others see the
    // writes of earlier kernels.
    dispatch.header = PacketHeader(
        HSA_PACKET_TYPE_KERNEL_DISPATCH, launch.after_all,
        launch.after_all ? HSA_FENCE_SCOPE_SYSTEM : HSA_FENCE_SCOPE_AGENT, HSA_FENCE_SCOPE_AGENT);
    dispatch.setup = 1;
    dispatch.workgroup_size_x = static_cast<uint16_t>(image.block_size);
    dispatch.workgroup_size_y = dispatch.workgroup_size_z = 1;
    dispatch.grid_size_x = static_cast<uint32_t>(launch.points.size() * image.block_size);
    dispatch.grid_size_y = dispatch.grid_size_z = 1;
    dispatch.private_segment_size = launch.hsa_kernel().private_bytes();
    dispatch.group_segment_size = launch.hsa_kernel().group_bytes();
    dispatch.kernel_object = launch.hsa_kernel().object();
    dispatch.kernarg_address = arguments;
    packets_.push_back(packet);
  }
}

void Replay::Bind(absl::Span<char* const> addresses) {
  KILN_CHECK_EQ(addresses.size(), num_slots_);
  if (std::equal(addresses.begin(), addresses.end(), addresses_.begin(), addresses_.end())) return;
  if (!addresses.empty()) std::memcpy(memory_, addresses.data(), addresses.size() * sizeof(char*));
  addresses_.assign(addresses.begin(), addresses.end());
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (launches_[i].kernel->image().takes_slot_table) continue;
    auto* to = reinterpret_cast<char**>(memory_ + offsets_[i]);
    for (const auto& [range, access] : launches_[i].operands)
      *to++ = addresses[range.slot] + range.offset;
  }
}

}  // namespace kiln::drivers::hsa
