// Runs candidates for one kernel. Implementations: on a device (device_trials.h), and in tests.
#ifndef KILN_SERVER_TUNER_TRIAL_RUNNER_H_
#define KILN_SERVER_TUNER_TRIAL_RUNNER_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/kernel/sample_inputs.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::tuner {

// The bytes of each buffer that the kernel writes, by its number in the kernel.
using Outputs = std::map<int, std::vector<char>>;

// A loaded candidate.
class Trial {
 public:
  virtual ~Trial() = default;

  // Runs `times` times, one after another, on random inputs. Returns the device's seconds for the
  // fastest run: other work of the machine lengthens some runs, and shortens none.
  // DEADLINE_EXCEEDED: all runs together took longer than `seconds_max`, and were stopped if the
  // device can stop them.
  virtual absl::StatusOr<double> Time(int times, double seconds_max) = 0;

  // Runs once on these inputs. DATA_LOSS: it wrote outside its outputs. DEADLINE_EXCEEDED as above.
  virtual absl::StatusOr<Outputs> Run(kernel::Sample sample, double seconds_max) = 0;
};

class TrialRunner {
 public:
  virtual ~TrialRunner() = default;

  // Makes these inputs ready, so that the next run on them takes less of the device's time; the one
  // after that, too, if it has the same inputs. Returns why nothing can run.
  virtual absl::Status Prepare(kernel::Sample sample) { return absl::OkStatus(); }

  // Runs that have begun end soon, with this error or one of their own, and later ones fail with
  // it. Thread-safe. An implementation without processes or queues may ignore it.
  virtual void Stop(const absl::Status& why) {}

  // Returns the device's error if it refuses the image. The runner must outlive the trial.
  virtual absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) = 0;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TRIAL_RUNNER_H_
