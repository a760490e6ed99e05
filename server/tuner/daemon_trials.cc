#include "server/tuner/daemon_trials.h"

#include <cstdint>
#include <utility>

#include "server/buffers/account.h"
#include "server/buffers/pool.h"
#include "server/log/log.h"
#include "server/quota/meter.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/fair_trials.h"
#include "server/tuner/process_trials.h"

namespace kiln::tuner {
namespace {

// All candidates of a kernel have the same inputs, and those of the next search, too.
constexpr uint64_t kSeed = 1;

// A kernel whose arguments take more than this share of the device's memory is not tuned: users
// need the rest.
constexpr int64_t kMemoryShares = 2;

// Users' runs that follow one another have shorter gaps.
constexpr double kQuietSeconds = 0.02;

std::shared_ptr<buffers::Account> AccountOfTrials(const runtime::ManagedDevice& device) {
  auto account = std::make_shared<buffers::Account>(
      nullptr, quota::Scope{kTunerUser, quota::Resource::kDeviceMemory, device.name()},
      quota::Scope{kTunerUser, quota::Resource::kBuffers});
  account->SetLimits(device.pool()->total_bytes() / kMemoryShares, /*buffers=*/0);
  return account;
}

}  // namespace

std::function<absl::StatusOr<std::unique_ptr<TrialRunner>>(const kernel::Kernel&,
                                                           runtime::ManagedDevice&)>
TrialsInProcesses(TrialCommand command) {
  return [command = std::move(command)](
             const kernel::Kernel& kernel,
             runtime::ManagedDevice& device) -> absl::StatusOr<std::unique_ptr<TrialRunner>> {
    if (absl::Status status = device.CheckUsable(/*new_work=*/true); !status.ok()) return status;
    ProcessTrials::Options options;
    options.charge =
        [pool = device.pool(), bytes = DeviceTrials::BytesOf(kernel, device.info().target),
         account = AccountOfTrials(device)](
            ProcessTrials::Options::GiveUp give_up) -> absl::StatusOr<std::shared_ptr<const void>> {
      auto memory = pool->Reserve(bytes, account, std::move(give_up));
      if (!memory.ok()) return memory.status();
      return std::shared_ptr<const void>(*std::move(memory));
    };
    options.command = command(device.info());
    options.repeats = false;  // another process must not start while the device waits
    options.on_lost = [name = kernel.name, on = device.name()](const std::string& why) {
      log::Warning("trial_process_lost", {{"kernel", name}, {"device", on}, {"why", why}});
    };
    auto trials =
        ProcessTrials::MakeUnopened(kernel, device.info().target, kSeed, std::move(options));
    if (!trials.ok()) return trials.status();
    return std::make_unique<FairTrials>(*std::move(trials), device.dispatcher(),
                                        FairTrials::Options{.step_seconds = 0,
                                                            .quiet_seconds = kQuietSeconds,
                                                            .steady_now = device.clock().steady,
                                                            .label = "trial of " + kernel.name});
  };
}

}  // namespace kiln::tuner
