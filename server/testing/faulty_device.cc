#include "server/testing/faulty_device.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace kiln::testing {

// A list with a separate one-command list for each command except signals and waits.
class FaultyDevice::List : public drivers::PreparedList {
 public:
  struct Step {
    drivers::Command command;
    std::unique_ptr<drivers::PreparedList> alone;
  };
  std::vector<Step> steps;
};

FaultyDevice::FaultyDevice(std::unique_ptr<drivers::Device> device, Fault fault)
    : device_(std::move(device)),
      fault_(std::move(fault)),
      queue_(absl::StrCat("faulty-", device_->info().name)) {}

FaultyDevice::~FaultyDevice() = default;

void FaultyDevice::Mend() {
  absl::MutexLock lock(&mutex_);
  mended_ = true;
}

absl::Status FaultyDevice::Health() {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

absl::Status FaultyDevice::Revive() {
  absl::MutexLock lock(&mutex_);
  if (mended_) lost_ = absl::OkStatus();
  mended_ = false;
  return lost_;
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> FaultyDevice::Allocate(int64_t bytes) {
  if (absl::Status status = Health(); !status.ok()) return status;
  return device_->Allocate(bytes);
}

absl::StatusOr<std::unique_ptr<drivers::LoadedKernel>> FaultyDevice::LoadKernel(
    const drivers::KernelImage& image) {
  if (absl::Status status = Health(); !status.ok()) return status;
  return device_->LoadKernel(image);
}

absl::StatusOr<std::unique_ptr<drivers::PreparedList>> FaultyDevice::Prepare(
    drivers::CommandList list) {
  if (absl::Status status = Health(); !status.ok()) return status;
  auto made = std::make_unique<List>();
  for (drivers::Command& command : list.commands) {
    const bool is_signal = std::holds_alternative<drivers::SignalCommand>(command);
    const bool is_wait = std::holds_alternative<drivers::WaitCommand>(command);
    List::Step& step = made->steps.emplace_back(List::Step{command, nullptr});
    if (is_signal || is_wait) continue;
    auto alone = device_->Prepare({.num_slots = list.num_slots,
                                   .commands = {std::move(command)},
                                   .host_slots = list.host_slots});
    if (!alone.ok()) return alone.status();
    step.alone = *std::move(alone);
  }
  return made;
}

absl::Status FaultyDevice::Submit(drivers::PreparedList& list,
                                  absl::Span<drivers::Buffer* const> slots,
                                  drivers::SubmitOptions options,
                                  std::function<void(drivers::SubmitResult)> done) {
  queue_.Push([this, &list = static_cast<List&>(list),
               buffers = std::vector<drivers::Buffer*>(slots.begin(), slots.end()),
               options = std::move(options), done = std::move(done)] {
    drivers::SubmitResult result;
    result.status = RunCommands(list, buffers, options, &result);
    if (!result.status.ok() && options.group != nullptr) options.group->Abort(result.status);
    done(std::move(result));
  });
  return absl::OkStatus();
}

absl::Status FaultyDevice::RunCommands(List& list, absl::Span<drivers::Buffer* const> slots,
                                       const drivers::SubmitOptions& options,
                                       drivers::SubmitResult* result) {
  for (const List::Step& step : list.steps) {
    if (absl::Status status = Health(); !status.ok()) return status;
    if (const absl::Status fault = fault_(step.command); !fault.ok()) {
      absl::MutexLock lock(&mutex_);
      lost_ = absl::UnavailableError(absl::StrCat("the device is lost: ", fault.message()));
      return lost_;
    }
    double seconds = 0;
    absl::Status status;
    if (const auto* signal = std::get_if<drivers::SignalCommand>(&step.command)) {
      options.group->Raise(signal->signal);
    } else if (const auto* wait = std::get_if<drivers::WaitCommand>(&step.command)) {
      status = options.group->Wait(wait->signal);
    } else {
      status = RunOne(*step.alone, slots, options, &seconds);
    }
    if (!status.ok()) return status;
    result->seconds += seconds;
    if (options.time_commands) result->command_seconds.push_back(seconds);
  }
  return absl::OkStatus();
}

absl::Status FaultyDevice::RunOne(drivers::PreparedList& command,
                                  absl::Span<drivers::Buffer* const> slots,
                                  const drivers::SubmitOptions& options, double* seconds) {
  absl::Notification ended;
  absl::Status result;
  const absl::Status submitted = device_->Submit(command, slots, {.unwanted = options.unwanted},
                                                 [&](const drivers::SubmitResult& of_it) {
                                                   result = of_it.status;
                                                   *seconds = of_it.seconds;
                                                   ended.Notify();
                                                 });
  if (!submitted.ok()) return submitted;
  ended.WaitForNotification();
  return result;
}

absl::Status FaultyDevice::StartCopyToDevice(drivers::Buffer& destination, int64_t offset,
                                             absl::Span<const char> source, CopyDone done) {
  if (absl::Status status = Health(); !status.ok()) return status;
  return device_->StartCopyToDevice(destination, offset, source, std::move(done));
}

absl::Status FaultyDevice::StartCopyToHost(const drivers::Buffer& source, int64_t offset,
                                           absl::Span<char> destination, CopyDone done) {
  if (absl::Status status = Health(); !status.ok()) return status;
  return device_->StartCopyToHost(source, offset, destination, std::move(done));
}

absl::Status FaultyDevice::Synchronize() {
  queue_.Wait();
  return Health();
}

}  // namespace kiln::testing
