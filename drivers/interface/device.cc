#include "drivers/interface/device.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace kiln::drivers {
namespace {

// Calls `start` with a completion callback and waits until that is called.
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

// Status payload that marks the error and holds the number.
constexpr char kBlockThreadsMax[] = "kiln/block_threads_max";
// Status payload that marks the error.
constexpr char kFinishedRefused[] = "kiln/finished_refused";

}  // namespace

absl::Status BlocksTooLarge(absl::string_view message, int threads_max) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kBlockThreadsMax, absl::Cord(absl::StrCat(threads_max)));
  return status;
}

std::optional<int> BlockThreadsMax(const absl::Status& status) {
  const auto payload = status.GetPayload(kBlockThreadsMax);
  int threads = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &threads)) return std::nullopt;
  return threads;
}

absl::Status FinishedRefused(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kFinishedRefused, absl::Cord());
  return status;
}

bool IsFinishedRefused(const absl::Status& status) {
  return status.GetPayload(kFinishedRefused).has_value();
}

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
