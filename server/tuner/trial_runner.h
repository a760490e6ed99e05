// Runs candidates for one kernel. Implementations: on a device (device_trials.h), and in tests.
#ifndef KILN_SERVER_TUNER_TRIAL_RUNNER_H_
#define KILN_SERVER_TUNER_TRIAL_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/kernel/sample_inputs.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::tuner {

// Trials have the device's time and memory as this user. No other may have the name
// (auth::CheckUserName).
inline constexpr char kTunerUser[] = "<tuner>";

// The bytes of each buffer that the kernel writes, by its number in the kernel.
using Outputs = std::map<int, std::vector<char>>;

struct Inputs {
  kernel::Sample sample = kernel::Sample::kRandom;
  // If not 0, floats are multiplied by random factors that differ from 1 by at most this.
  double perturbation = 0;
  uint64_t seed = 0;  // of the factors

  bool operator==(const Inputs&) const = default;
};

// A loaded candidate. ABORTED of any method: nothing is known of it, since the runner was paused or
// something else ended what the candidate ran in. It has to be repeated, after Load.
class Trial {
 public:
  virtual ~Trial() = default;

  // Loads it again if what it was loaded in is gone, so that the next run takes less of the
  // device's time. Returns why it cannot run.
  virtual absl::Status Load() { return absl::OkStatus(); }

  // Runs `times` times, one after another, on random inputs. Returns the device's seconds for the
  // fastest run: other work of the machine lengthens some runs, and shortens none.
  // DEADLINE_EXCEEDED: all runs together took longer than `seconds_max`, and were stopped if the
  // device can stop them.
  virtual absl::StatusOr<double> Time(int times, double seconds_max) = 0;

  // Runs once on these inputs. DATA_LOSS: it wrote outside its outputs. DEADLINE_EXCEEDED as above.
  virtual absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) = 0;
};

// The error of a paused runner's trials.
inline absl::Status TrialsPaused() { return absl::AbortedError("the trials are paused"); }

// One launch of a candidate that is several kernels.
struct TrialStep {
  drivers::KernelImage image;
  std::vector<int> arguments;  // numbers of buffers of the runner's kernel
};

class TrialRunner {
 public:
  virtual ~TrialRunner() = default;

  // Makes these inputs ready, so that the next run on them takes less of the device's time; the one
  // after that, too, if it has the same inputs. Returns why nothing can run.
  virtual absl::Status Prepare(const Inputs& inputs) { return absl::OkStatus(); }

  // Runs that have begun end soon, with this error or one of their own, and later ones fail with
  // it. Thread-safe. An implementation without processes or queues may ignore it.
  virtual void Stop(const absl::Status& why) {}

  // Frees what it can until Resume. Runs that have begun end soon, and they and later ones fail
  // with ABORTED. Thread-safe. An implementation that holds nothing may ignore both.
  virtual void Pause() {}
  virtual void Resume() {}

  // From now on the runner also pauses by itself, until Resume, when a user's allocation needs the
  // memory that it holds of the device. It then calls `on_yield`, on the user's thread and with
  // locks held: it returns quickly, and calls nothing of the runner. Null: the runner keeps its
  // memory, and calls nothing once this has returned. An implementation that holds no memory of a
  // device may ignore it.
  virtual void SetOnYield(std::function<void()> on_yield) {}

  // Returns the device's error if it refuses the image, whose arguments are the kernel's global
  // buffers. The runner must outlive the trial.
  virtual absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) = 0;

  // The same for several kernels, one after another. A run is all of them. An implementation that
  // runs single kernels only may refuse.
  virtual absl::StatusOr<std::unique_ptr<Trial>> LoadSteps(absl::Span<const TrialStep> steps) {
    return absl::UnimplementedError("this runs single kernels only");
  }
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TRIAL_RUNNER_H_
