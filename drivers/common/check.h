// What every driver checks of a command list before it trusts it.
#ifndef KILN_DRIVERS_COMMON_CHECK_H_
#define KILN_DRIVERS_COMMON_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/interface/buffer.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::drivers {

// What a checked list demands of the buffers in its slots.
struct ListNeeds {
  std::vector<int64_t> slot_bytes;  // at least this many
  bool needs_group = false;         // has signals or waits
  int signals = 0;                  // that its group must have
  std::vector<bool> is_host;        // of each slot; empty: none is
  bool IsHost(size_t slot) const { return !is_host.empty() && is_host[slot]; }
};

// What a launch runs of its kernel's grid.
GridRange PointsOf(const LaunchCommand& launch);

// Slots, offsets and sizes of all commands are in range, launches have as many arguments as their
// kernels, copies do not overlap. INVALID_ARGUMENT names the command by its number. Whether the
// kernels are this driver's is for the driver.
absl::StatusOr<ListNeeds> CheckCommandList(const CommandList& list);

// The arguments of Submit. INVALID_ARGUMENT names the slot.
absl::Status CheckSlots(const ListNeeds& needs, absl::Span<Buffer* const> slots,
                        const SubmitOptions& options);

// OUT_OF_RANGE if [offset, offset + size) is not within the buffer; `what` is "copy to" or "copy
// from".
absl::Status CheckCopy(const std::string& what, const Buffer& buffer, int64_t offset, int64_t size);

// The fields that have the same meaning on every architecture. INVALID_ARGUMENT names the kernel
// and the field.
absl::Status CheckImage(const KernelImage& image, const std::string& architecture);

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_CHECK_H_
