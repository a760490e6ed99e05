// The trials of the daemon: in another process, and in turns of the device's queue.
#ifndef KILN_SERVER_TUNER_DAEMON_TRIALS_H_
#define KILN_SERVER_TUNER_DAEMON_TRIALS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "drivers/interface/device.h"
#include "server/runtime/device/managed_device.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Returns the command of a process that opens this device and calls RunTrialProcess.
using TrialCommand = std::function<std::vector<std::string>(const drivers::DeviceInfo&)>;

// Returns a function that makes a FairTrials of a ProcessTrials. The kernel and the device must
// outlive what it makes. The log has a line for each process that a candidate ended.
std::function<absl::StatusOr<std::unique_ptr<TrialRunner>>(const kernel::Kernel&,
                                                           runtime::ManagedDevice&)>
TrialsInProcesses(TrialCommand command);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_DAEMON_TRIALS_H_
