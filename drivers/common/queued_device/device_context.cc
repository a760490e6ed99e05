#include "drivers/common/queued_device/device_context.h"

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers {

absl::StatusOr<char*> DeviceContext::AllocateHostMemory(size_t bytes) {
  return absl::UnimplementedError("the device shares no memory with the host");
}

void DeviceContext::ReleaseHostMemory(char* memory) {}

absl::Status DeviceContext::NoMemoryFor(int64_t bytes, absl::string_view what) const {
  if (absl::Status lost = Health(); !lost.ok()) return lost;
  return absl::ResourceExhaustedError(
      absl::StrCat("the device does not have ", bytes, " bytes left ", what));
}

absl::Status DeviceContext::Health() const {
  absl::MutexLock lock(&lost_mutex_);
  return lost_;
}

absl::Status DeviceContext::Lose(absl::string_view why) {
  absl::MutexLock lock(&lost_mutex_);
  if (lost_.ok()) lost_ = absl::UnavailableError(absl::StrCat("the device is lost: ", why));
  KILN_CHECK(absl::IsUnavailable(lost_)) << lost_.ToString();
  return lost_;
}

}  // namespace kiln::drivers
