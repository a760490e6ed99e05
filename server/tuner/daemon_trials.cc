#include "server/tuner/daemon_trials.h"

#include <cstdint>
#include <utility>

#include "server/log/log.h"
#include "server/tuner/fair_trials.h"
#include "server/tuner/process_trials.h"

namespace kiln::tuner {
namespace {

// All candidates of a kernel have the same inputs, and those of the next search, too.
constexpr uint64_t kSeed = 1;

}  // namespace

std::function<absl::StatusOr<std::unique_ptr<TrialRunner>>(const kernel::Kernel&,
                                                           runtime::ManagedDevice&)>
TrialsInProcesses(TrialCommand command) {
  return [command = std::move(command)](
             const kernel::Kernel& kernel,
             runtime::ManagedDevice& device) -> absl::StatusOr<std::unique_ptr<TrialRunner>> {
    if (absl::Status status = device.CheckUsable(/*new_work=*/true); !status.ok()) return status;
    ProcessTrials::Options options;
    options.command = command(device.info());
    options.repeats = false;  // another process must not start while the device waits
    options.on_lost = [name = kernel.name, on = device.name()](const std::string& why) {
      log::Warning("trial_process_lost", {{"kernel", name}, {"device", on}, {"why", why}});
    };
    auto trials =
        ProcessTrials::MakeUnopened(kernel, device.info().target, kSeed, std::move(options));
    return std::make_unique<FairTrials>(std::move(trials), device.dispatcher(),
                                        FairTrials::Options{.step_seconds = 0,
                                                            .steady_now = device.clock().steady,
                                                            .label = "trial of " + kernel.name});
  };
}

}  // namespace kiln::tuner
