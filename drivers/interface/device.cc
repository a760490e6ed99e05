#include "drivers/interface/device.h"

#include "absl/synchronization/notification.h"

namespace kiln::drivers {
namespace {

// `start` gets what to call at the end.
template <typename Start>
absl::Status AndWait(Start start) {
  absl::Notification ended;
  absl::Status result;
  const absl::Status started = start([&](const absl::Status& status) {
    result = status;
    ended.Notify();
  });
  if (!started.ok()) return started;
  ended.WaitForNotification();
  return result;
}

}  // namespace

absl::Status Device::CopyToDevice(Buffer& destination, int64_t offset,
                                  absl::Span<const char> source) {
  if (absl::Status status = Synchronize(); !status.ok()) return status;
  return AndWait([&](CopyDone done) {
    return StartCopyToDevice(destination, offset, source, std::move(done));
  });
}

absl::Status Device::CopyToHost(const Buffer& source, int64_t offset,
                                absl::Span<char> destination) {
  if (absl::Status status = Synchronize(); !status.ok()) return status;
  return AndWait(
      [&](CopyDone done) { return StartCopyToHost(source, offset, destination, std::move(done)); });
}

}  // namespace kiln::drivers
