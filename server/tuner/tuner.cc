#include "server/tuner/tuner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/graph/text.h"
#include "compiler/ir/node.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/sites.h"
#include "compiler/pipeline.h"
#include "compiler/rehearse.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/space.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/tuner/choice_search.h"
#include "server/tuner/measure_rates.h"
#include "server/tuner/program_trials.h"

namespace kiln::tuner {
namespace {

// The part of the time in which choices are searched for. The kernels that they make are searched
// in the rest.
constexpr double kShareOfChoices = 0.4;
constexpr int kProgramsOfSearch = 3;
// A search measures the heuristic's schedule and compares its results before it tries anything.
constexpr double kKernelSecondsMin = 1;

constexpr std::string_view kStateNames[] = {"searching",       "faster",       "kept",
                                            "searched before", "no time left", "failed"};

double WeightOf(const KernelToTune& kernel) { return kernel.seconds * kernel.launches; }

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

// As they are stored: empty, if they are the partitioner's.
std::string TextOf(const partition::Choices& choices) {
  return choices.empty() ? "" : partition::Print(choices);
}

absl::Status CannotTune(const runtime::ManagedDevice& device) {
  return errors::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          device.name(), " computes nothing, so no schedule is faster there than another")),
      "CANNOT_TUNE", {{"device", device.name()}});
}

// A digest would tell a user who has the same program that another one has it, too.
absl::Status AlreadyTuning(const runtime::ManagedDevice& device, const TuningInfo& other,
                           const std::string& user) {
  const std::string program = other.user == user ? absl::StrCat("the program ", other.program)
                                                 : "a program of another user";
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

// The device is wanted for what a user asks for.
absl::Status Superseded() { return absl::AbortedError("a user's tuning goes first"); }

}  // namespace

std::string_view OriginName(Origin origin) { return origin == Origin::kIdle ? "idle" : "asked"; }

std::string_view TuneStateName(TuneState state) { return kStateNames[static_cast<int>(state)]; }

// A runner that Stop and a cancellation stop.
class Tuner::Running {
 public:
  Running(Tuner& tuner, TrialRunner& runner, TuningControl& control)
      : tuner_(tuner), runner_(runner), control_(control) {
    control_.SetRunner(&runner_);
    absl::MutexLock lock(&tuner_.mutex_);
    const bool is_new = tuner_.running_.insert(&runner_).second;
    KILN_CHECK(is_new);
    if (tuner_.stopped_) runner_.Stop(Stopped());
  }
  ~Running() {
    control_.SetRunner(nullptr);
    absl::MutexLock lock(&tuner_.mutex_);
    tuner_.running_.erase(&runner_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Tuner& tuner_;
  TrialRunner& runner_;
  TuningControl& control_;
};

// One call of Tune.
class Tuner::Work {
 public:
  Work(Tuner& tuner, std::vector<KernelToTune> kernels, std::string program,
       const TuneOptions& options)
      : tuner_(tuner),
        parts_(tuner.options_),
        program_(std::move(program)),
        options_(options),
        control_(options.control != nullptr ? options.control : std::make_shared<TuningControl>()),
        start_(Now()) {
    SetKernels(std::move(kernels));
  }

  absl::StatusOr<TuneSummary> Run() {
    log::Info("tune_started", {{"program", program_},
                               {"origin", std::string(OriginName(options_.origin))},
                               {"kernels", absl::StrCat(kernels_.size())},
                               {"seconds", absl::StrCat(options_.seconds)},
                               {"width", absl::StrCat(options_.width)}});
    if (options_.graph != nullptr && parts_.compile_program) RunGraph(*options_.graph);
    for (size_t i = 0; i < kernels_.size() && !IsCancelled(); ++i) {
      RunKernel(i);
      rest_ -= WeightOf(kernels_[i]);
    }
    if (changed_) parts_.on_changed();
    const absl::StatusOr<TuneSummary> result = Result();
    parts_.metrics->TuneEnded(OriginName(options_.origin), Elapsed());
    log::Info("tune_ended",
              {{"program", program_},
               {"origin", std::string(OriginName(options_.origin))},
               {"seconds", absl::StrCat(Elapsed())},
               {"faster", absl::StrCat(summary_.faster)},
               {"kept", absl::StrCat(summary_.kept)},
               {"failed", absl::StrCat(summary_.failed)},
               {"skipped", absl::StrCat(summary_.skipped)},
               {"why", result.ok() ? "done" : std::string(result.status().message())}});
    return result;
  }

 private:
  void SetKernels(std::vector<KernelToTune> kernels) {
    kernels_ = std::move(kernels);
    is_measured_ = absl::c_any_of(kernels_, [](const auto& one) { return WeightOf(one) > 0; });
    Sort(&kernels_);
    rest_ = 0;
    for (const KernelToTune& kernel : kernels_) rest_ += WeightOf(kernel);
    all_ = rest_;
  }

  bool IsCancelled() const { return tuner_.stopped_ || control_->is_cancelled(); }
  // Without pauses.
  absl::Time Now() const {
    const absl::Time now = parts_.clock.steady();
    return now - control_->paused(now);
  }
  double Elapsed() const { return absl::ToDoubleSeconds(Now() - start_); }

  absl::StatusOr<TuneSummary> Result() const {
    if (tuner_.stopped_) return Stopped();
    if (IsCancelled()) return control_->status();
    const bool none = summary_.faster + summary_.kept + summary_.skipped == 0;
    if (none && !first_error_.ok()) return first_error_;
    return summary_;
  }

  // A graph without choices that can be found has the partitioner's. So an error is no failure of
  // the tuning.
  void RunGraph(const GraphToTune& graph) {
    const auto searched = SearchGraph(graph);
    if (searched.ok() || IsCancelled()) return;
    log::Warning("choices_not_searched",
                 {{"program", program_}, {"why", std::string(searched.message())}});
  }

  absl::Status SearchGraph(const GraphToTune& to_tune) {
    const drivers::Target& target = to_tune.device->info().target;
    const std::string hardware = StoredHardware(target.HardwareKey(), to_tune.owner);
    const auto known = parts_.store->Find(to_tune.key, target.HardwareKey(), to_tune.owner);
    const bool is_searched = known && known->width >= options_.width && !options_.force;
    if (is_searched && known->setting == to_tune.choices) return absl::OkStatus();
    const auto graph = graph::Parse(to_tune.graph);
    if (!graph.ok()) return graph.status();
    partition::Choices start;
    if (known && !known->setting.empty()) {
      auto choices = partition::ParseChoices(known->setting);
      if (choices.ok()) start = *std::move(choices);
    }
    if (is_searched) {
      // The kernels that the program will have.
      const auto program = parts_.compile_program(*graph, target, CompilerOptions(to_tune, start));
      if (!program.ok()) return program.status();
      SetKernels(KernelsOf(*program, to_tune, kernels_));
      return absl::OkStatus();
    }
    // Stored choices may be of another version, or another machine's.
    if (!start.empty()) {
      const auto program = parts_.compile_program(*graph, target, CompilerOptions(to_tune, start));
      if (!program.ok()) return program.status();
      if (IsRefused(*program)) start = {};
    }
    std::vector<compiler::PassReport> reports;
    const auto state = compiler::RunPasses(*graph, target, {"", "split_epilogues"},
                                           CompilerOptions(to_tune, start), &reports);
    if (!state.ok()) return state.status();
    if (state->choices.key != to_tune.key)
      return absl::InternalError("the text of the graph gives another graph");
    const std::vector<partition::Site> sites =
        partition::FindSites(state->graph, state->clusters, target);
    memory::Charge charge;
    const auto compile =
        [&](const partition::Choices& choices) -> absl::StatusOr<compiler::CompiledProgram> {
      control_->AwaitResume();
      if (IsCancelled()) return absl::CancelledError("the tuning has ended");
      auto program = parts_.compile_program(*graph, target, CompilerOptions(to_tune, choices));
      if (!program.ok()) return program.status();
      absl::Status charged = ChargePrograms(*program, &charge);
      if (!charged.ok()) return charged;
      return program;
    };
    const auto compare = [&](const compiler::CompiledProgram& before,
                             const compiler::CompiledProgram& after) {
      return CompareOnDevice(
          before, after,
          [&](const kernel::Kernel& buffers, absl::FunctionRef<absl::Status(TrialRunner&)> use) {
            return WithRunnerFor(buffers, *to_tune.device, use);
          },
          parts_.trials);
    };
    const auto result = FindChoices(
        sites, compile, compare,
        {.start = start,
         .seconds_max = kShareOfChoices * options_.seconds,
         .now = [this] { return Now(); },
         .cancelled = [this] { return IsCancelled(); },
         .on_progress = [this](const ChoiceProgress& progress) { ReportChoice(progress); }});
    if (!result.ok()) return result.status();
    absl::Status stored = StoreChoices(to_tune, hardware, *result, known);
    // Nothing runs the kernels of choices that are not stored.
    if (stored.ok() && TextOf(result->choices) != to_tune.choices)
      SetKernels(KernelsOf(result->program, to_tune, kernels_));
    return stored;
  }

  // A search holds the programs of its start, of the best choices and of a candidate. All are
  // charged as the largest so far, to the user who tunes.
  absl::Status ChargePrograms(const compiler::CompiledProgram& program, memory::Charge* charge) {
    if (options_.host == nullptr) return absl::OkStatus();
    const int64_t bytes = kProgramsOfSearch * runtime::HostBytes(program);
    if (charge->bytes() > 0)
      return bytes > charge->bytes() ? charge->Resize(bytes) : absl::OkStatus();
    auto reserved = options_.host->Reserve(memory::Use::kPrograms, bytes);
    if (!reserved.ok()) return reserved.status();
    *charge = *std::move(reserved);
    return absl::OkStatus();
  }

  // Compiles with these choices, and with the stored settings of kernels: choices must be faster
  // than what there is.
  compiler::Options CompilerOptions(const GraphToTune& graph, const partition::Choices& choices) {
    compiler::Options options;
    options.threads = parts_.trials.compile_threads;
    options.tuned = [this, owner = graph.owner](const std::string& kernel,
                                                const drivers::Target& target) {
      return parts_.store->SettingFor(kernel, target, owner);
    };
    options.choices = [text = TextOf(choices)](const std::string&, const drivers::Target&) {
      return std::optional<std::string>(text);
    };
    return options;
  }

  absl::Status WithRunnerFor(const kernel::Kernel& buffers, runtime::ManagedDevice& device,
                             absl::FunctionRef<absl::Status(TrialRunner&)> use) {
    control_->AwaitResume();
    if (IsCancelled()) return absl::CancelledError("the tuning has ended");
    memory::Charge charge;
    if (options_.host != nullptr) {
      auto reserved = options_.host->Reserve(memory::Use::kTransfers, BytesCompared(buffers));
      if (!reserved.ok()) return reserved.status();
      charge = *std::move(reserved);
    }
    const auto runner = parts_.make_runner(buffers, device);
    if (!runner.ok()) return runner.status();
    const Running running(tuner_, **runner, *control_);
    return use(**runner);
  }

  // The seconds are of a run of the program, as far as its kernels were timed.
  absl::Status StoreChoices(const GraphToTune& graph, const std::string& hardware,
                            const ChoiceSearchResult& result,
                            const std::optional<TunedSetting>& known) {
    const bool is_complete = result.is_complete && !IsCancelled();
    const double measured = is_measured_ ? all_ : 0;
    const double before = std::max(measured, result.comparison.seconds_before);
    const double gain = result.comparison.seconds_before - result.comparison.seconds_after;
    const TunedSetting found{
        .kernel = graph.key,
        .hardware = hardware,
        .version = search::kSettingVersion,
        .setting = TextOf(result.choices),
        .seconds_before = before,
        .seconds_after = before - gain,
        .roofline_seconds = 0,
        .measured = absl::FromUnixSeconds(absl::ToUnixSeconds(parts_.clock.wall())),
        .width = is_complete ? options_.width : (known ? known->width : 0)};
    const std::string old = known ? known->setting : "";
    log::Info("choices_tuned", {{"program", program_},
                                {"choices", absl::StrCat(result.choices.values.size())},
                                {"tried", absl::StrCat(result.tried)},
                                {"refused", absl::StrCat(result.refused)},
                                {"seconds_before", absl::StrCat(found.seconds_before)},
                                {"seconds_now", absl::StrCat(found.seconds_after)}});
    if (const absl::Status put = parts_.store->Put(found); !put.ok()) return put;
    changed_ = changed_ || found.setting != old;
    return absl::OkStatus();
  }

  void ReportChoice(const ChoiceProgress& progress) {
    kinds_ = progress.kinds;
    now_ = {.kernel = progress.site,
            .number = progress.number,
            .kernels = progress.kinds + static_cast<int>(kernels_.size()),
            .state = progress.was_chosen    ? TuneState::kFaster
                     : progress.why.empty() ? TuneState::kKept
                                            : TuneState::kFailed,
            .why = progress.why,
            .share = is_measured_ ? progress.comparison.seconds_before / all_ : 0,
            .seconds_before = progress.comparison.seconds_before,
            .seconds_now = progress.was_chosen ? progress.comparison.seconds_after
                                               : progress.comparison.seconds_before,
            .tried = progress.tried,
            .refused = progress.refused,
            .is_site = true};
    Tell();
  }

  void RunKernel(size_t i) {
    const KernelToTune& kernel = kernels_[i];
    now_ = {.kernel = kernel.name,
            .number = kinds_ + static_cast<int>(i) + 1,
            .kernels = kinds_ + static_cast<int>(kernels_.size()),
            .share = all_ > 0 ? WeightOf(kernel) / all_ : 0};
    const auto known = Known(kernel);
    if (known) {
      now_.seconds_before = known->seconds_before;
      now_.seconds_now = known->seconds_after;
    }
    if (const auto rates = parts_.store->FindRates(kernel.device->info().target.HardwareKey()))
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

  // The owner's own setting goes before one that was imported for all.
  std::optional<TunedSetting> Known(const KernelToTune& kernel) const {
    return parts_.store->Find(kernel.text, kernel.device->info().target.HardwareKey(),
                              kernel.owner);
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
    const absl::Status rehearsed =
        Compile()(compiler::RehearsalOfSetting(to_tune.name, to_tune.text, "", target)).status();
    if (!rehearsed.ok()) return rehearsed;
    const search::Space space(*kernel, target, search::MachineOf(target));
    const absl::Time end = Now() + absl::Seconds(seconds);
    for (int attempt = 0;; ++attempt) {
      now_.roofline =
          attempt < 2 ? MeasureRoofline(*kernel, *to_tune.device, attempt == 1) : Roofline();
      const auto result = Find(space, *kernel, to_tune, known, absl::ToDoubleSeconds(end - Now()));
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
                                            const KernelToTune& to_tune,
                                            const std::optional<TunedSetting>& known,
                                            double seconds) {
    is_disturbed_ = false;
    const auto runner = parts_.make_runner(kernel, *to_tune.device);
    if (!runner.ok()) return runner.status();
    const Running running(tuner_, **runner, *control_);
    const drivers::Target& target = to_tune.device->info().target;
    const std::string hardware = target.HardwareKey();
    KernelTrials trials(kernel, target, Compile(), **runner, parts_.trials);
    const auto nearest =
        parts_.store->NearestSetting(kernel::Print(kernel), hardware, to_tune.owner);
    const auto model = parts_.samples != nullptr ? parts_.samples->ModelOf(hardware) : nullptr;
    auto result = search::FindSetting(
        space, trials,
        {.width = options_.width,
         .starts = StartsOf(known, nearest),
         .model = model.get(),
         .seconds_max = seconds,
         .roofline_seconds = now_.roofline.seconds,
         .rehearse =
             [&, compile = Compile(),
              text = kernel::Print(kernel)](const search::Setting& setting) {
               absl::Status status = compile(compiler::RehearsalOfSetting(
                                                 kernel.name, text, search::Print(setting), target))
                                         .status();
               is_disturbed_ = is_disturbed_ || absl::IsUnavailable(status);
               return status;
             },
         .now = [this] { return Now(); },
         .cancelled = [this] { return IsCancelled(); },
         .on_progress = [this](const search::SearchProgress& progress) { Report(progress); }});
    if (result.ok()) {
      parts_.metrics->TuneTried(OriginName(options_.origin),
                                result->progress.tried - result->progress.failed,
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

  // Compiles when the tuning is not paused, unless it ends.
  workers::CompileFunction Compile() {
    return [this](const workers::KernelJob& job) -> absl::StatusOr<drivers::KernelImage> {
      control_->AwaitResume();
      if (IsCancelled()) return absl::CancelledError("the tuning has ended");
      return options_.compile ? options_.compile(job) : parts_.compile(job);
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
      const auto measured = MeasureRates(
          target, Compile(), parts_.trials.compile_threads,
          [&](const kernel::Kernel& buffers, absl::FunctionRef<absl::Status(TrialRunner&)> use) {
            return WithRunnerFor(buffers, device, use);
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
    // Something else than the candidates kept some from being tried.
    const bool is_disturbed =
        is_disturbed_ || absl::c_any_of(result.path, [](const search::SearchStep& step) {
          return absl::IsUnavailable(step.timing.status());
        });
    const bool is_complete =
        result.ending != search::Ending::kSeconds && !is_disturbed && !IsCancelled();
    const TunedSetting found{
        .kernel = kernel.text,
        .hardware = HardwareOf(kernel),
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
      parts_.metrics->KernelTuned(OriginName(options_.origin), TuneStateName(state));
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
  const std::shared_ptr<TuningControl> control_;
  const absl::Time start_;
  int kinds_ = 0;              // of sites, whose numbers precede those of kernels
  bool is_disturbed_ = false;  // there was no worker for a candidate of the last search
  bool is_measured_ = false;   // the times of kernels are seconds, and not guessed from sizes
  double all_ = 0;             // the device time of all kernels
  double rest_ = 0;            // of those that were not looked at yet
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
  KILN_CHECK(claims_.empty());
  KILN_CHECK(running_.empty());
}

void Tuner::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (TrialRunner* runner : running_) runner->Stop(Stopped());
  // Paused ones, too.
  for (auto& [id, ongoing] : claims_) ongoing.info.control->Cancel(Stopped());
}

absl::StatusOr<std::unique_ptr<Tuner::Claim>> Tuner::Begin(
    std::vector<runtime::ManagedDevice*> devices, TuningInfo info) {
  KILN_CHECK_NE(info.control, nullptr);
  for (const runtime::ManagedDevice* device : devices) {
    if (device->info().target.architecture == "null") return CannotTune(*device);
    if (absl::Status status = device->CheckUsable(true); !status.ok()) return status;
  }
  absl::MutexLock lock(&mutex_);
  if (stopped_) return Stopped();
  std::vector<Ongoing*> superseded;
  for (auto& [id, other] : claims_) {
    if (other.is_superseded) continue;
    // One that was told to end measures nothing more.
    const bool goes_first = info.origin == Origin::kAsked && other.info.origin == Origin::kIdle;
    const bool may_supersede = goes_first || other.info.control->is_cancelled();
    for (const runtime::ManagedDevice* device : other.devices) {
      if (absl::c_find(devices, device) == devices.end()) continue;
      if (!may_supersede) return AlreadyTuning(*device, other.info, info.user);
      superseded.push_back(&other);
    }
  }
  for (Ongoing* other : superseded) {
    other->is_superseded = true;
    other->info.control->Cancel(Superseded());
  }
  claims_[++last_id_] = {.info = std::move(info),
                         .devices = std::move(devices),
                         .since = options_.clock.wall(),
                         .progress = {}};
  return std::make_unique<Claim>(this, last_id_);
}

void Tuner::Release(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  claims_.erase(id);
}

void Tuner::Report(uint64_t id, const TuneProgress& progress) {
  absl::MutexLock lock(&mutex_);
  const auto found = claims_.find(id);
  KILN_CHECK(found != claims_.end()) << "tuning " << id;
  found->second.progress = progress;
}

std::vector<ListedTuning> Tuner::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ListedTuning> list;
  for (const auto& [id, ongoing] : claims_) {
    if (ongoing.is_superseded) continue;
    ListedTuning& listed = list.emplace_back(ListedTuning{
        .id = id, .info = ongoing.info, .since = ongoing.since, .progress = ongoing.progress});
    for (const runtime::ManagedDevice* device : ongoing.devices)
      listed.devices.push_back(device->name());
  }
  return list;
}

absl::StatusOr<TuningInfo> Tuner::Cancel(uint64_t id, const std::string& user,
                                         const std::string& message) {
  absl::MutexLock lock(&mutex_);
  const auto found = claims_.find(id);
  if (found == claims_.end() || (!user.empty() && found->second.info.user != user)) {
    return errors::WithReason(
        absl::NotFoundError(absl::StrCat("no tuning has the number ", id,
                                         "; `kiln tune list` shows those that run")),
        "UNKNOWN_TUNING", {{"tuning", absl::StrCat(id)}});
  }
  found->second.info.control->Cancel(absl::CancelledError(message));
  return found->second.info;
}

bool Tuner::IsAsked(const runtime::ManagedDevice& device) const {
  absl::MutexLock lock(&mutex_);
  return absl::c_any_of(claims_, [&](const auto& claim) {
    return claim.second.info.origin == Origin::kAsked &&
           absl::c_find(claim.second.devices, &device) != claim.second.devices.end();
  });
}

absl::StatusOr<TuneSummary> Tuner::Tune(std::vector<KernelToTune> kernels,
                                        const std::string& program, const TuneOptions& options) {
  return Work(*this, std::move(kernels), program, options).Run();
}

}  // namespace kiln::tuner
