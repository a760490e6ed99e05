// Checks of command lists that all drivers share.
#ifndef KILN_DRIVERS_COMMON_CHECK_H_
#define KILN_DRIVERS_COMMON_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "drivers/interface/buffer.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::drivers {

// Requirements of a checked list on its submission.
struct ListNeeds {
  std::vector<int64_t> slot_bytes;  // the minimum size of each slot's buffer
  bool needs_group = false;         // has signals or waits
  int signals = 0;                  // the number of signals that its group must have
  std::vector<bool> is_host;        // per slot; empty: none
  bool IsHost(size_t slot) const { return !is_host.empty() && is_host[slot]; }
};

// The grid points that a launch runs.
GridRange PointsOf(const LaunchCommand& launch);

// Checks that slots, offsets and sizes of all commands are in range, that launches have as many
// arguments as their kernels, and that copies do not overlap. INVALID_ARGUMENT names the command by
// its number. Does not check that the kernels belong to this driver.
absl::StatusOr<ListNeeds> CheckCommandList(const CommandList& list);

// Checks the arguments of Submit. INVALID_ARGUMENT names the slot.
absl::Status CheckSlots(const ListNeeds& needs, absl::Span<Buffer* const> slots,
                        const SubmitOptions& options);

// OUT_OF_RANGE if [offset, offset + size) is not within the buffer; `what` is "copy to" or "copy
// from".
absl::Status CheckCopy(const std::string& what, const Buffer& buffer, int64_t offset, int64_t size);

// Checks the fields that have the same meaning on every architecture. INVALID_ARGUMENT names the
// kernel and the field.
absl::Status CheckImage(const KernelImage& image, const std::string& architecture);

// Checks also the fields that have the same meaning on all devices that run blocks of threads, and
// the target's limits. `form`: of code that has no entry and no scratch, "PTX".
absl::Status CheckBlockImage(const KernelImage& image, const Target& target,
                             absl::string_view form);

// INVALID_ARGUMENT that begins with the kernel's name: "the kernel softmax has no code".
template <typename... Parts>
absl::Status RefusedKernel(const KernelImage& image, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("the kernel ", image.name, " ", parts...));
}

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_CHECK_H_
