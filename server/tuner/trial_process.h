// A process that runs candidates for another process (process_trials.h), and may crash or hang.
#ifndef KILN_SERVER_TUNER_TRIAL_PROCESS_H_
#define KILN_SERVER_TUNER_TRIAL_PROCESS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"

namespace kiln::tuner {

using OpenDevice = std::function<absl::StatusOr<std::unique_ptr<drivers::Device>>()>;

// Answers requests (trial_messages.h) until the parent closes the socket (Process::kSocket) or
// dies. `open` is called once. Main calls this before it starts a thread. Ends the process.
[[noreturn]] void RunTrialProcess(const OpenDevice& open);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TRIAL_PROCESS_H_
