#include "server/tuner/tuner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/ir/node.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/space.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/tuner/measure_rates.h"

namespace kiln::tuner {
namespace {

// A search measures the heuristic's schedule and compares its results before it tries anything.
constexpr double kKernelSecondsMin = 1;

constexpr std::string_view kStateNames[] = {"searching",       "faster",       "kept",
                                            "searched before", "no time left", "failed"};

double WeightOf(const KernelToTune& kernel) { return kernel.seconds * kernel.launches; }

// A kernel's expected time by its size, in any unit.
double SizeOf(const KernelToTune& kernel) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel.text, context);
  if (!parsed.ok()) return 0;
  const kernel::Cost cost = kernel::EstimateCost(*parsed);
  return static_cast<double>(cost.flops) + static_cast<double>(cost.bytes);
}

// Guesses the times if the program has not run, and sorts by share.
void Sort(std::vector<KernelToTune>* kernels) {
  const bool is_measured = std::any_of(kernels->begin(), kernels->end(),
                                       [](const auto& kernel) { return WeightOf(kernel) > 0; });
  if (!is_measured)
    for (KernelToTune& kernel : *kernels) kernel.seconds = SizeOf(kernel);
  std::stable_sort(kernels->begin(), kernels->end(),
                   [](const auto& a, const auto& b) { return WeightOf(a) > WeightOf(b); });
}

double RatioOf(const TunedSetting& setting) {
  return setting.seconds_before > 0 ? setting.seconds_after / setting.seconds_before : 1;
}

// The host memory in which results are compared: those of two schedules, and of one on other
// inputs, with a double for each element.
int64_t BytesCompared(const kernel::Kernel& kernel) {
  double bytes = 0;  // a user chooses the sizes
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kGlobal || buffer.access == kernel::Access::kRead)
      continue;
    bytes +=
        static_cast<double>(buffer.elements) * (3.0 * ir::SizeOf(buffer.dtype) + sizeof(double));
  }
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

// The stored settings of an earlier search and of the most similar kernel. The space completes
// them, and the search leaves out those that are not legal.
std::vector<search::Setting> StartsOf(const std::optional<TunedSetting>& known,
                                      const std::optional<std::string>& nearest) {
  std::vector<search::Setting> starts;
  for (const std::string& text : {known ? known->setting : "", nearest.value_or("")}) {
    auto parsed = search::ParseSetting(text);
    if (parsed.ok()) starts.push_back(std::move(parsed->setting));
  }
  return starts;
}

absl::Status CannotTune(const runtime::ManagedDevice& device) {
  return errors::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          device.name(), " computes nothing, so no schedule is faster there than another")),
      "CANNOT_TUNE", {{"device", device.name()}});
}

absl::Status AlreadyTuning(const runtime::ManagedDevice& device, const std::string& program) {
  return errors::WithReason(
      absl::UnavailableError(absl::StrCat(device.name(), " is already tuning ", program,
                                          "; try again when that has ended")),
      "ALREADY_TUNING", {{"device", device.name()}});
}

absl::Status Stopped() {
  return errors::WithReason(
      absl::UnavailableError(
          "the daemon stops; what was found for kernels before this one is stored"),
      "TUNING_STOPPED");
}

absl::Status Cancelled() { return absl::CancelledError("the tuning was cancelled"); }

}  // namespace

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  is_cancelled_ = true;
  if (runner_ != nullptr) runner_->Stop(Cancelled());
}

bool Cancellation::is_cancelled() const {
  absl::MutexLock lock(&mutex_);
  return is_cancelled_;
}

void Cancellation::SetRunner(TrialRunner* runner) {
  absl::MutexLock lock(&mutex_);
  runner_ = runner;
  if (is_cancelled_ && runner_ != nullptr) runner_->Stop(Cancelled());
}

std::string_view TuneStateName(TuneState state) { return kStateNames[static_cast<int>(state)]; }

std::vector<KernelToTune> KernelsOf(const runtime::Program& program) {
  const std::vector<compiler::CompiledKernel>& compiled = program.compiled().kernels;
  const std::vector<runtime::KernelTimes> times = program.kernel_times();
  KILN_CHECK_EQ(compiled.size(), times.size());
  std::map<std::pair<std::string, std::string>, size_t> known;  // by hardware and text
  std::vector<KernelToTune> kernels;
  for (size_t i = 0; i < compiled.size(); ++i) {
    runtime::ManagedDevice& device = program.device_of_kernel(i);
    const auto [at, is_new] =
        known.try_emplace({device.info().target.HardwareKey(), compiled[i].ir}, kernels.size());
    if (!is_new) {
      kernels[at->second].launches += times[i].launches;
      continue;
    }
    kernels.push_back({.name = compiled[i].image.name,
                       .text = compiled[i].ir,
                       .device = &device,
                       .seconds = times[i].median_seconds,
                       .launches = times[i].launches});
  }
  return kernels;
}

// A runner that Stop and a cancellation stop.
class Tuner::Running {
 public:
  Running(Tuner& tuner, TrialRunner& runner, Cancellation* cancellation)
      : tuner_(tuner), runner_(runner), cancellation_(cancellation) {
    if (cancellation_ != nullptr) cancellation_->SetRunner(&runner_);
    absl::MutexLock lock(&tuner_.mutex_);
    const bool is_new = tuner_.running_.insert(&runner_).second;
    KILN_CHECK(is_new);
    if (tuner_.stopped_) runner_.Stop(Stopped());
  }
  ~Running() {
    if (cancellation_ != nullptr) cancellation_->SetRunner(nullptr);
    absl::MutexLock lock(&tuner_.mutex_);
    tuner_.running_.erase(&runner_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Tuner& tuner_;
  TrialRunner& runner_;
  Cancellation* const cancellation_;
};

// One call of Tune.
class Tuner::Work {
 public:
  Work(Tuner& tuner, std::vector<KernelToTune> kernels, std::string program,
       const TuneOptions& options)
      : tuner_(tuner),
        parts_(tuner.options_),
        kernels_(std::move(kernels)),
        program_(std::move(program)),
        options_(options),
        start_(parts_.clock.steady()) {
    Sort(&kernels_);
    for (const KernelToTune& kernel : kernels_) rest_ += WeightOf(kernel);
    all_ = rest_;
  }

  absl::StatusOr<TuneSummary> Run() {
    log::Info("tune_started", {{"program", program_},
                               {"kernels", absl::StrCat(kernels_.size())},
                               {"seconds", absl::StrCat(options_.seconds)},
                               {"width", absl::StrCat(options_.width)}});
    for (size_t i = 0; i < kernels_.size() && !IsCancelled(); ++i) {
      RunKernel(i);
      rest_ -= WeightOf(kernels_[i]);
    }
    if (changed_) parts_.on_changed();
    const absl::StatusOr<TuneSummary> result = Result();
    parts_.metrics->TuneEnded(Elapsed());
    log::Info("tune_ended",
              {{"program", program_},
               {"seconds", absl::StrCat(Elapsed())},
               {"faster", absl::StrCat(summary_.faster)},
               {"kept", absl::StrCat(summary_.kept)},
               {"failed", absl::StrCat(summary_.failed)},
               {"skipped", absl::StrCat(summary_.skipped)},
               {"why", result.ok() ? "done" : std::string(result.status().message())}});
    return result;
  }

 private:
  bool IsCancelled() const {
    return tuner_.stopped_ ||
           (options_.cancellation != nullptr && options_.cancellation->is_cancelled());
  }
  double Elapsed() const { return absl::ToDoubleSeconds(parts_.clock.steady() - start_); }

  absl::StatusOr<TuneSummary> Result() const {
    if (tuner_.stopped_) return Stopped();
    if (IsCancelled()) return Cancelled();
    const bool none = summary_.faster + summary_.kept + summary_.skipped == 0;
    if (none && !first_error_.ok()) return first_error_;
    return summary_;
  }

  void RunKernel(size_t i) {
    const KernelToTune& kernel = kernels_[i];
    now_ = {.kernel = kernel.name,
            .number = static_cast<int>(i) + 1,
            .kernels = static_cast<int>(kernels_.size()),
            .share = all_ > 0 ? WeightOf(kernel) / all_ : 0};
    const auto known = parts_.store->Find(kernel.text, Hardware(kernel));
    if (known) {
      now_.seconds_before = known->seconds_before;
      now_.seconds_now = known->seconds_after;
    }
    if (const auto rates = parts_.store->FindRates(Hardware(kernel)))
      now_.roofline = RooflineOf(kernel.text, *rates);
    const double left = options_.seconds - Elapsed();
    if (known && known->width >= options_.width && !options_.force) {
      End(TuneState::kSearched);
    } else if (left <= 0) {
      End(TuneState::kNoTime);
    } else {
      const double share = rest_ > 0 ? WeightOf(kernel) / rest_ : 1;
      const auto state =
          Search(kernel, known, std::min(left, std::max(share * left, kKernelSecondsMin)));
      if (state.ok()) return End(*state);
      if (IsCancelled()) return;
      now_.why = std::string(state.status().message());
      if (first_error_.ok()) first_error_ = state.status();
      End(TuneState::kFailed);
    }
  }

  static std::string Hardware(const KernelToTune& kernel) {
    return kernel.device->info().target.HardwareKey();
  }

  absl::StatusOr<TuneState> Search(const KernelToTune& to_tune,
                                   const std::optional<TunedSetting>& known, double seconds) {
    ir::Context context;
    auto kernel = kernel::ParseKernel(to_tune.text, context);
    if (!kernel.ok()) return kernel.status();
    kernel->name = to_tune.name;
    memory::Charge charge;
    if (options_.host != nullptr) {
      auto reserved = options_.host->Reserve(memory::Use::kTransfers, BytesCompared(*kernel));
      if (!reserved.ok()) return reserved.status();
      charge = *std::move(reserved);
    }
    const drivers::Target& target = to_tune.device->info().target;
    const search::Space space(*kernel, target, search::MachineOf(target));
    const absl::Time end = parts_.clock.steady() + absl::Seconds(seconds);
    for (int attempt = 0;; ++attempt) {
      now_.roofline =
          attempt < 2 ? MeasureRoofline(*kernel, *to_tune.device, attempt == 1) : Roofline();
      const auto result = Find(space, *kernel, *to_tune.device, known,
                               absl::ToDoubleSeconds(end - parts_.clock.steady()));
      if (!result.ok()) return result.status();
      // The search may have ended too early.
      if (IsBeaten(now_.roofline, result->best.timing.seconds)) {
        if (result->ending == search::Ending::kRoofline && attempt < 2) continue;
        now_.roofline = {};
      }
      return Store(to_tune, *result, result->best.candidate.setting == space.heuristic(), known);
    }
  }

  absl::StatusOr<search::SearchResult> Find(const search::Space& space,
                                            const kernel::Kernel& kernel,
                                            runtime::ManagedDevice& device,
                                            const std::optional<TunedSetting>& known,
                                            double seconds) {
    const auto runner = parts_.make_runner(kernel, device);
    if (!runner.ok()) return runner.status();
    const Running running(tuner_, **runner, options_.cancellation.get());
    KernelTrials trials(kernel, device.info().target, Compile(), **runner, parts_.trials);
    const auto nearest =
        parts_.store->NearestSetting(kernel::Print(kernel), device.info().target.HardwareKey());
    const std::string hardware = device.info().target.HardwareKey();
    const auto model = parts_.samples != nullptr ? parts_.samples->ModelOf(hardware) : nullptr;
    auto result = search::FindSetting(
        space, trials,
        {.width = options_.width,
         .starts = StartsOf(known, nearest),
         .model = model.get(),
         .seconds_max = seconds,
         .roofline_seconds = now_.roofline.seconds,
         .now = parts_.clock.steady,
         .cancelled = [this] { return IsCancelled(); },
         .on_progress = [this](const search::SearchProgress& progress) { Report(progress); }});
    if (result.ok()) {
      parts_.metrics->TuneTried(result->progress.tried - result->progress.failed,
                                result->progress.failed);
      AddSamples(space, kernel, hardware, *result);
    }
    return result;
  }

  // Stores what was measured, for the searches of other kernels.
  void AddSamples(const search::Space& space, const kernel::Kernel& kernel,
                  const std::string& hardware, const search::SearchResult& result) {
    if (parts_.samples == nullptr || result.path.size() < 2) return;
    KernelSamples samples{.hardware = hardware, .heuristic = {}, .schedules = {}};
    for (const search::SearchStep& step : result.path) {
      if (!step.timing.ok() || samples.schedules.size() >= CostSamples::kSchedulesMax) continue;
      const auto schedule = space.Write(step.setting);
      auto features = schedule.ok() ? space.FeaturesOf(*schedule) : schedule.status();
      if (!features.ok()) continue;
      const double ratio = step.timing->seconds / result.progress.heuristic_seconds;
      if (samples.heuristic.empty()) samples.heuristic = *features;
      if (ratio > 0) samples.schedules.emplace_back(*std::move(features), std::log(ratio));
    }
    // They only order candidates.
    if (!samples.heuristic.empty())
      parts_.samples->Add(kernel::Print(kernel), samples).IgnoreError();
  }

  // Compiles unless the tuning ends.
  workers::CompileFunction Compile() {
    return [this](const workers::KernelJob& job) -> absl::StatusOr<drivers::KernelImage> {
      if (IsCancelled()) return Cancelled();
      return parts_.compile(job);
    };
  }

  // Returns the roofline by the stored rates of the device, which are measured if there are none or
  // if they are too low (`again`). Unknown if they cannot be measured.
  Roofline MeasureRoofline(const kernel::Kernel& kernel, runtime::ManagedDevice& device,
                           bool again) {
    const drivers::Target& target = device.info().target;
    std::optional<DeviceRates> rates = parts_.store->FindRates(target.HardwareKey());
    const bool may_measure = parts_.measure_rates && !cannot_measure_.contains(&device);
    if (may_measure && (again || !rates)) {
      const auto measured =
          MeasureRates(target, Compile(), parts_.trials.compile_threads,
                       [&](const kernel::Kernel& buffers,
                           absl::FunctionRef<absl::Status(TrialRunner&)> use) -> absl::Status {
                         const auto runner = parts_.make_runner(buffers, device);
                         if (!runner.ok()) return runner.status();
                         const Running running(tuner_, **runner, options_.cancellation.get());
                         return use(**runner);
                       });
      if (!measured.ok()) {
        // Not for each kernel anew.
        cannot_measure_.insert(&device);
        if (!IsCancelled()) {
          log::Warning("rates_not_measured", {{"device", device.name()},
                                              {"why", std::string(measured.status().message())}});
        }
        return {};
      }
      rates = rates ? Highest(*rates, *measured) : *measured;
      // Without them, the next tuning measures again.
      parts_.store->PutRates(target.HardwareKey(), *rates).IgnoreError();
    }
    return rates ? RooflineOf(kernel, *rates) : Roofline();
  }

  // A search that was cut short is not complete: the next one repeats it from its result on, and
  // what it has found does not replace anything better.
  absl::StatusOr<TuneState> Store(const KernelToTune& kernel, const search::SearchResult& result,
                                  bool is_heuristic, const std::optional<TunedSetting>& known) {
    const bool is_complete = result.ending != search::Ending::kSeconds && !IsCancelled();
    const TunedSetting found{
        .kernel = kernel.text,
        .hardware = Hardware(kernel),
        .version = search::kSettingVersion,
        .setting = is_heuristic ? "" : search::Print(result.best.candidate.setting),
        .seconds_before = result.progress.heuristic_seconds,
        .seconds_after = result.best.timing.seconds,
        .roofline_seconds = now_.roofline.seconds,
        .measured = absl::FromUnixSeconds(absl::ToUnixSeconds(parts_.clock.wall())),
        .width = is_complete ? options_.width : (known ? known->width : 0)};
    now_.seconds_before = found.seconds_before;
    now_.seconds_now = found.seconds_after;
    const bool is_worse = !is_complete && known && RatioOf(*known) <= RatioOf(found);
    if (is_worse) return TuneState::kKept;
    if (const absl::Status put = parts_.store->Put(found); !put.ok()) return put;
    const std::string before = known ? known->setting : "";
    if (found.setting == before) return TuneState::kKept;
    changed_ = true;
    return found.setting.empty() ? TuneState::kKept : TuneState::kFaster;
  }

  void Report(const search::SearchProgress& progress) {
    now_.seconds_before = progress.heuristic_seconds;
    now_.seconds_now = progress.best_seconds;
    now_.round = progress.round;
    now_.tried = progress.tried;
    now_.refused = progress.failed;
    Tell();
  }

  void End(TuneState state) {
    now_.state = state;
    const bool is_skipped = state == TuneState::kSearched || state == TuneState::kNoTime;
    ++(state == TuneState::kFaster   ? summary_.faster
       : state == TuneState::kKept   ? summary_.kept
       : state == TuneState::kFailed ? summary_.failed
                                     : summary_.skipped);
    if (!is_skipped) {
      parts_.metrics->KernelTuned(TuneStateName(state));
      log::Info("kernel_tuned", {{"program", program_},
                                 {"kernel", now_.kernel},
                                 {"outcome", std::string(TuneStateName(state))},
                                 {"why", now_.why},
                                 {"seconds_before", absl::StrCat(now_.seconds_before)},
                                 {"seconds_now", absl::StrCat(now_.seconds_now)},
                                 {"roofline_seconds", absl::StrCat(now_.roofline.seconds)},
                                 {"limit", std::string(LimitName(now_.roofline.limit))},
                                 {"tried", absl::StrCat(now_.tried)}});
    }
    Tell();
  }

  void Tell() {
    const bool is_last = now_.number == now_.kernels && now_.state != TuneState::kSearching;
    now_.fraction_done = is_last ? 1 : std::min(1.0, Elapsed() / options_.seconds);
    if (options_.on_progress) options_.on_progress(now_);
  }

  Tuner& tuner_;
  const Options& parts_;
  std::vector<KernelToTune> kernels_;
  const std::string program_;
  const TuneOptions& options_;
  const absl::Time start_;
  double all_ = 0;   // the device time of all kernels
  double rest_ = 0;  // of those that were not looked at yet
  std::set<const runtime::ManagedDevice*> cannot_measure_;
  TuneProgress now_;
  TuneSummary summary_;
  absl::Status first_error_;
  bool changed_ = false;
};

Tuner::Tuner(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.store != nullptr && options_.metrics != nullptr);
  KILN_CHECK(options_.compile && options_.make_runner && options_.on_changed);
}

Tuner::~Tuner() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(claimed_.empty());
  KILN_CHECK(running_.empty());
}

void Tuner::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (TrialRunner* runner : running_) runner->Stop(Stopped());
}

absl::StatusOr<std::unique_ptr<Tuner::Claim>> Tuner::Begin(
    std::vector<runtime::ManagedDevice*> devices, const std::string& program) {
  for (const runtime::ManagedDevice* device : devices) {
    if (device->info().target.architecture == "null") return CannotTune(*device);
    if (absl::Status status = device->CheckUsable(true); !status.ok()) return status;
  }
  absl::MutexLock lock(&mutex_);
  if (stopped_) return Stopped();
  for (runtime::ManagedDevice* device : devices) {
    if (const auto other = claimed_.find(device); other != claimed_.end())
      return AlreadyTuning(*device, other->second);
  }
  for (runtime::ManagedDevice* device : devices) claimed_[device] = program;
  return std::make_unique<Claim>(this, std::move(devices));
}

void Tuner::Release(const std::vector<runtime::ManagedDevice*>& devices) {
  absl::MutexLock lock(&mutex_);
  for (runtime::ManagedDevice* device : devices) claimed_.erase(device);
}

absl::StatusOr<TuneSummary> Tuner::Tune(std::vector<KernelToTune> kernels,
                                        const std::string& program, const TuneOptions& options) {
  return Work(*this, std::move(kernels), program, options).Run();
}

}  // namespace kiln::tuner
