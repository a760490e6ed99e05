#include "server/tuner/device_trials.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

// The bytes of a guard band: a page of most devices.
constexpr int64_t kGuardBytes = 4096;
// NaN in all float dtypes.
constexpr int kGuard = 0xff;
// More than any device has. A user chooses the sizes of a kernel's arguments, whose sum may be more
// than an int64 holds.
constexpr int64_t kPlacesBytesMax = int64_t{1} << 61;

int64_t RoundUp(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

class DeviceTrials::LoadedTrial : public Trial {
 public:
  LoadedTrial(DeviceTrials& trials, std::vector<LoadedStep> steps)
      : trials_(trials), steps_(std::move(steps)) {}

  absl::StatusOr<double> Time(int times, double seconds_max) override {
    if (trials_.inputs_ != Inputs()) {
      if (absl::Status status = trials_.Fill({}); !status.ok()) return status;
    }
    if (absl::Status status = Prepare(times); !status.ok()) return status;
    return trials_.Submit(*list_, steps_.size(), seconds_max);
  }

  absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) override {
    // Fills the outputs, too: an element that is not written must not have an earlier run's value.
    absl::Status status = trials_.Fill(inputs);
    if (status.ok()) status = Prepare(1);
    if (!status.ok()) return status;
    const auto seconds = trials_.Submit(*list_, steps_.size(), seconds_max);
    if (!seconds.ok()) return seconds.status();
    std::vector<char> after(trials_.before_.size());
    status = trials_.device_.CopyToHost(*trials_.buffer_, 0, absl::MakeSpan(after));
    if (status.ok()) status = trials_.CheckOutside(after);
    if (!status.ok()) {
      trials_.inputs_.reset();
      return status;
    }
    Outputs outputs;
    for (size_t i = 0; i < trials_.places_.size(); ++i) {
      if (!trials_.IsOutput(i)) continue;
      const char* begin = after.data() + trials_.places_[i].offset;
      outputs[static_cast<int>(i)].assign(begin, begin + trials_.places_[i].bytes);
    }
    return outputs;
  }

 private:
  absl::Status Prepare(int times) {
    if (list_ != nullptr && prepared_times_ == times) return absl::OkStatus();
    auto prepared = trials_.device_.Prepare(trials_.Launches(steps_, times));
    if (!prepared.ok()) return prepared.status();
    list_ = *std::move(prepared);
    prepared_times_ = times;
    return absl::OkStatus();
  }

  DeviceTrials& trials_;
  const std::vector<LoadedStep> steps_;
  std::unique_ptr<drivers::PreparedList> list_;
  int prepared_times_ = 0;
};

DeviceTrials::DeviceTrials(drivers::Device& device, const kernel::Kernel& kernel, uint64_t seed)
    : device_(device),
      kernel_(kernel),
      seed_(seed),
      integer_bound_(kernel::IntegerBound(kernel)),
      whole_(kernel::HasExactSums(kernel)) {
  const int64_t bytes = PlaceArguments(kernel, device.info().target, &places_);
  before_.assign(static_cast<size_t>(bytes), static_cast<char>(kGuard));
}

int64_t DeviceTrials::PlaceArguments(const kernel::Kernel& kernel, const drivers::Target& target,
                                     std::vector<Place>* places) {
  const int64_t alignment = target.limits.buffer_alignment;
  int64_t end = RoundUp(kGuardBytes, alignment);
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kGlobal) break;  // globals come first
    places->push_back({end, buffer.elements * ir::SizeOf(buffer.dtype)});
    end = RoundUp(end + places->back().bytes + kGuardBytes, alignment);
    end = std::min(end, kPlacesBytesMax);
  }
  return end;
}

int64_t DeviceTrials::BytesOf(const kernel::Kernel& kernel, const drivers::Target& target) {
  std::vector<Place> places;
  return PlaceArguments(kernel, target, &places);
}

DeviceTrials::~DeviceTrials() = default;

absl::StatusOr<std::unique_ptr<DeviceTrials>> DeviceTrials::Make(drivers::Device& device,
                                                                 const kernel::Kernel& kernel,
                                                                 uint64_t seed) {
  std::unique_ptr<DeviceTrials> trials(new DeviceTrials(device, kernel, seed));
  auto buffer = device.Allocate(static_cast<int64_t>(trials->before_.size()));
  if (!buffer.ok()) return buffer.status();
  trials->buffer_ = *std::move(buffer);
  if (absl::Status status = trials->Fill({}); !status.ok()) return status;
  return trials;
}

absl::StatusOr<std::unique_ptr<Trial>> DeviceTrials::Load(const drivers::KernelImage& image) {
  TrialStep step{.image = image, .arguments = {}};
  for (size_t i = 0; i < places_.size(); ++i) step.arguments.push_back(static_cast<int>(i));
  return LoadSteps({&step, 1});
}

absl::StatusOr<std::unique_ptr<Trial>> DeviceTrials::LoadSteps(absl::Span<const TrialStep> steps) {
  if (steps.empty()) return absl::InvalidArgumentError("a candidate has no kernels");
  std::vector<LoadedStep> loaded;
  for (const TrialStep& step : steps) {
    const bool fits = absl::c_all_of(step.arguments, [this](int argument) {
      return argument >= 0 && argument < static_cast<int>(places_.size());
    });
    if (!fits || step.image.num_arguments != static_cast<int>(step.arguments.size())) {
      return absl::InvalidArgumentError(absl::StrCat("the image takes ", step.image.num_arguments,
                                                     " arguments, and ", step.arguments.size(),
                                                     " of ", places_.size(), " buffers are given"));
    }
    auto kernel = device_.LoadKernel(step.image);
    if (!kernel.ok()) return kernel.status();
    loaded.push_back({*std::move(kernel), step.arguments});
  }
  return std::make_unique<LoadedTrial>(*this, std::move(loaded));
}

bool DeviceTrials::IsOutput(size_t argument) const {
  return kernel_.buffers[argument].access != kernel::Access::kRead;
}

absl::Status DeviceTrials::Prepare(const Inputs& inputs) {
  for (size_t i = 0; i < places_.size() && prepared_ != inputs; ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    if (buffer.access == kernel::Access::kWrite) continue;  // has the guard's bytes
    char* data = before_.data() + places_[i].offset;
    kernel::FillSample(inputs.sample, buffer.dtype, buffer.elements, integer_bound_, whole_,
                       seed_ + i, data);
    if (inputs.perturbation == 0) continue;
    kernel::Perturb(buffer.dtype, buffer.elements, inputs.perturbation, inputs.seed + i, data);
  }
  prepared_ = inputs;
  return absl::OkStatus();
}

// Gives all arguments the content that they have before a run.
absl::Status DeviceTrials::Fill(const Inputs& inputs) {
  if (absl::Status status = Prepare(inputs); !status.ok()) return status;
  absl::Status status = device_.CopyToDevice(*buffer_, 0, before_);
  if (status.ok()) inputs_ = inputs;
  return status;
}

// Returns DATA_LOSS if a byte outside the outputs has changed.
absl::Status DeviceTrials::CheckOutside(const std::vector<char>& after) const {
  std::string last = "the first buffer";
  size_t at = 0;
  auto check = [&](size_t end) -> absl::Status {
    const auto [was, is] = std::mismatch(before_.begin() + static_cast<int64_t>(at),
                                         before_.begin() + static_cast<int64_t>(end),
                                         after.begin() + static_cast<int64_t>(at));
    if (was == before_.begin() + static_cast<int64_t>(end)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "it writes outside its outputs: ", is - after.begin() - static_cast<int64_t>(at),
        " bytes after ", last));
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!IsOutput(i)) continue;
    const auto offset = static_cast<size_t>(places_[i].offset);
    if (absl::Status status = check(offset); !status.ok()) return status;
    at = offset + static_cast<size_t>(places_[i].bytes);
    last = absl::StrCat("buffer b", i);
  }
  return check(before_.size());
}

drivers::CommandList DeviceTrials::Launches(const std::vector<LoadedStep>& steps, int times) const {
  std::vector<drivers::LaunchCommand> launches;
  for (const LoadedStep& step : steps) {
    drivers::LaunchCommand& launch =
        launches.emplace_back(drivers::LaunchCommand{.kernel = step.kernel.get(), .arguments = {}});
    for (const int argument : step.arguments) {
      const Place& place = places_[static_cast<size_t>(argument)];
      launch.arguments.push_back({0, place.offset, place.bytes});
    }
  }
  drivers::CommandList list;
  list.num_slots = 1;
  for (int i = 0; i < times; ++i)
    list.commands.insert(list.commands.end(), launches.begin(), launches.end());
  return list;
}

absl::StatusOr<double> DeviceTrials::Submit(drivers::PreparedList& list, size_t steps,
                                            double seconds_max) {
  const auto unwanted = std::make_shared<std::atomic<bool>>(false);
  absl::Notification ended;
  drivers::SubmitResult result;
  drivers::Buffer* const slots[] = {buffer_.get()};
  absl::Status status = device_.Submit(list, slots, {.time_commands = true, .unwanted = unwanted},
                                       [&](drivers::SubmitResult done) {
                                         result = std::move(done);
                                         ended.Notify();
                                       });
  if (!status.ok()) return status;
  const bool in_time = ended.WaitForNotificationWithTimeout(absl::Seconds(seconds_max));
  if (!in_time) {
    unwanted->store(true);
    device_.StopUnwanted();
    ended.WaitForNotification();
    result.status =
        absl::DeadlineExceededError(absl::StrCat("it ran longer than ", seconds_max, " s"));
  }
  if (result.status.ok()) {
    const std::vector<double>& seconds = result.command_seconds;
    KILN_CHECK(!seconds.empty() && seconds.size() % steps == 0) << seconds.size();
    double least = std::numeric_limits<double>::infinity();
    for (auto run = seconds.begin(); run != seconds.end(); run += static_cast<int64_t>(steps))
      least = std::min(least, std::accumulate(run, run + static_cast<int64_t>(steps), 0.0));
    return least;
  }
  inputs_.reset();  // the buffer may have any content
  return result.status;
}

}  // namespace kiln::tuner
