// Trials on a device.
#ifndef KILN_SERVER_TUNER_DEVICE_TRIALS_H_
#define KILN_SERVER_TUNER_DEVICE_TRIALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/sample_inputs.h"
#include "drivers/interface/device.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Not thread-safe. All arguments of the kernel are in one buffer of the device, between guard bands
// of NaN: a candidate that reads them gets other results, and one that writes anywhere but into its
// outputs is found out, if it is within the buffer. Uses the memory of the arguments once on the
// device, and twice on the host.
//
// It submits to the device directly. The caller decides when: in the daemon, in its turn of the
// device's queue.
class DeviceTrials : public TrialRunner {
 public:
  // Allocates and fills the buffer. The kernel and the device must outlive this. Errors: those of
  // Device::Allocate and of copies.
  static absl::StatusOr<std::unique_ptr<DeviceTrials>> Make(drivers::Device& device,
                                                            const kernel::Kernel& kernel,
                                                            uint64_t seed);
  ~DeviceTrials() override;

  // The memory of the device that Make allocates.
  static int64_t BytesOf(const kernel::Kernel& kernel, const drivers::Target& target);

  absl::Status Prepare(const Inputs& inputs) override;
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override;
  absl::StatusOr<std::unique_ptr<Trial>> LoadSteps(absl::Span<const TrialStep> steps) override;

 private:
  class LoadedTrial;
  // The place of an argument in the buffer.
  struct Place {
    int64_t offset = 0;
    int64_t bytes = 0;
  };
  // Returns the bytes of the buffer.
  static int64_t PlaceArguments(const kernel::Kernel& kernel, const drivers::Target& target,
                                std::vector<Place>* places);

  DeviceTrials(drivers::Device& device, const kernel::Kernel& kernel, uint64_t seed);

  bool IsOutput(size_t argument) const;
  absl::Status Fill(const Inputs& inputs);
  absl::Status CheckOutside(const std::vector<char>& after) const;
  // A kernel with its arguments.
  struct LoadedStep {
    std::unique_ptr<drivers::LoadedKernel> kernel;
    std::vector<int> arguments;
  };
  drivers::CommandList Launches(const std::vector<LoadedStep>& steps, int times) const;
  // Returns the device's seconds for the fastest `steps` launches of the list that follow one
  // another.
  absl::StatusOr<double> Submit(drivers::PreparedList& list, size_t steps, double seconds_max);

  drivers::Device& device_;
  const kernel::Kernel& kernel_;
  const uint64_t seed_;
  const int64_t integer_bound_;
  const bool whole_;
  std::vector<Place> places_;  // by argument: the kernel's global buffers
  std::vector<char> before_;   // the content of the whole buffer before a run on `prepared_`
  std::optional<Inputs> prepared_;
  std::unique_ptr<drivers::Buffer> buffer_;
  std::optional<Inputs> inputs_;  // those in the buffer
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_DEVICE_TRIALS_H_
