#include "server/runtime/cache/program_compiler.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/cache/compile_log.h"
#include "server/runtime/program/share_results.h"

namespace kiln::runtime {
namespace {

// The maximum number of logged graphs that the compiler failed on: a client that repeats its
// requests must not fill the log.
constexpr size_t kShownGraphsMax = 100;

absl::Status CheckFits(const std::string& what, int64_t bytes, const ManagedDevice& device) {
  const int64_t limit = device.pool()->total_bytes();
  if (bytes <= limit) return absl::OkStatus();
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(what, " need ", bytes, " bytes, but ",
                                                device.name(), " has ", limit,
                                                "; use smaller shapes or a smaller batch")),
      "OUT_OF_MEMORY",
      {{"device", device.name()}, {"bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}});
}

absl::Status CheckSignatureFits(const Signature& signature, const ManagedDevice& device) {
  absl::Status status = CheckFits("the program's results", signature.result_bytes(), device);
  for (const TensorTypePointer& type : signature.inputs) {
    if (status.ok())
      status = CheckFits(absl::StrCat("an input's ", type->ToString()), type->bytes(), device);
  }
  return status;
}

// One device for a graph without a mesh, one for each place of a mesh.
absl::Status CheckCount(const graph::Graph& graph, absl::Span<ManagedDevice* const> devices) {
  const auto count = static_cast<int64_t>(devices.size());
  const int64_t wanted = graph.sharding ? graph::NumDevices(graph.sharding->mesh) : 1;
  if (count == wanted) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(
          graph.sharding
              ? absl::StrCat("the graph's mesh has ", wanted, " places, but ", count,
                             " devices are named; name one for each place")
              : absl::StrCat("the graph has no mesh, but ", count, " devices are named; name one")),
      "WRONG_DEVICE_COUNT");
}

// Charges the payer as long as the program lives, no matter how many others use it.
absl::Status ChargeProgram(const Payer& payer, Program* program) {
  if (!payer.account()) return absl::OkStatus();
  auto charge = payer.Reserve(memory::Use::kPrograms, program->host_bytes());
  if (!charge.ok()) return charge.status();
  program->Keep(*std::move(charge));
  return absl::OkStatus();
}

// One user's part of a cache.
class OwnersCache : public compiler::KernelCache {
 public:
  OwnersCache(compiler::KernelCache* cache, std::string owner)
      : cache_(cache), owner_(std::move(owner)) {}
  std::optional<std::string> Get(const std::string& key) override { return cache_->Get(Own(key)); }
  void Put(const std::string& key, const std::string& value) override {
    cache_->Put(Own(key), value);
  }

 private:
  std::string Own(const std::string& key) const {
    return absl::StrCat(key, "\nof the user ", owner_);
  }

  compiler::KernelCache* const cache_;
  const std::string owner_;
};

// Records the compilation of each kernel.
class TracedCompiler : public workers::KernelCompiler {
 public:
  // `make_span` returns the span of a compilation that began at this time and ends now, without the
  // kernel's name.
  TracedCompiler(workers::KernelCompiler* compiler, trace::Recorder* recorder,
                 std::function<trace::Span(absl::Time begin)> make_span)
      : compiler_(compiler), recorder_(recorder), make_span_(std::move(make_span)) {}

  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override {
    absl::Time begin = recorder_->now();
    workers::KernelJob timed = job;
    // The time for which the job waits for a worker is not of the kernel.
    timed.on_begin = [&] {
      begin = recorder_->now();
      if (job.on_begin) job.on_begin();
    };
    auto image = compiler_->Compile(timed);
    trace::Span span = make_span_(begin);
    span.name = job.name;
    span.number = 0;
    recorder_->Add(std::move(span));
    return image;
  }

 private:
  workers::KernelCompiler* const compiler_;
  trace::Recorder* const recorder_;
  const std::function<trace::Span(absl::Time)> make_span_;
};

// Stores entries and never finds one.
class WriteOnlyCache : public compiler::KernelCache {
 public:
  explicit WriteOnlyCache(compiler::KernelCache* cache) : cache_(cache) {}
  std::optional<std::string> Get(const std::string&) override { return std::nullopt; }
  void Put(const std::string& key, const std::string& value) override {
    if (cache_ != nullptr) cache_->Put(key, value);
  }

 private:
  compiler::KernelCache* const cache_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Program>> ProgramCompiler::Compile(const ProgramRequest& request,
                                                                  const graph::Graph& graph,
                                                                  const std::string& digest) {
  std::vector<ManagedDevice*> devices = request.members;
  if (devices.empty()) devices = {request.device};
  if (absl::Status status = CheckCount(graph, devices); !status.ok()) return status;
  if (graph.sharding == nullptr) {
    absl::Status fits = CheckSignatureFits(Signature::Of(graph), *devices[0]);
    if (!fits.ok()) return fits;
  }
  CompileLabel label{digest, request.name, request.DeviceNames(), UserOf(request)};
  LogCompileStarted(label, graph);
  if (!trace::IsOn(options_.trace_recorder)) return CompileAttempts(request, graph, devices, label);
  label.number = options_.trace_recorder->NewNumber();
  const absl::Time start = options_.trace_recorder->now();
  auto program = CompileAttempts(request, graph, devices, label);
  options_.trace_recorder->Add(MakeSpan(trace::Kind::kCompile, start, label));
  return program;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramCompiler::CompileAttempts(
    const ProgramRequest& request, const graph::Graph& graph,
    absl::Span<ManagedDevice* const> devices, const CompileLabel& label) {
  Attempt attempt;
  for (const ManagedDevice* device : devices) {
    const int threads = device->info().target.limits.threads_per_block;
    attempt.block_threads_max = std::max(attempt.block_threads_max, threads);
  }
  auto program = CompileFor(attempt, request, graph, devices, label);
  // Each attempt has smaller blocks or one way less to finish images, so the loop ends.
  while (ShrinkBlocks(program.status(), label, &attempt) ||
         FinishAnew(program.status(), devices, label, &attempt))
    program = CompileFor(attempt, request, graph, devices, label);
  if (!program.ok()) return program;
  if (absl::Status status = CheckRunTime(**program); !status.ok()) return status;
  absl::Status charged = ChargeProgram(request.payer, program->get());
  if (!charged.ok()) return charged;
  LogCompiled(label, (*program)->compiled(), (*program)->description().compile_seconds);
  if (graph.sharding == nullptr) {
    absl::Status fits =
        CheckFits("the program's intermediate and final results",
                  (*program)->arena_bytes() + (*program)->signature().result_bytes(), *devices[0]);
    if (!fits.ok()) return fits;
  }
  (*program)->SetFirstCall(request.first_call);
  return program;
}

bool ProgramCompiler::ShrinkBlocks(const absl::Status& loaded, const CompileLabel& label,
                                   Attempt* attempt) {
  const std::optional<int> threads = drivers::BlockThreadsMax(loaded);
  if (!threads || *threads < 1 || *threads >= attempt->block_threads_max) return false;
  attempt->block_threads_max = *threads;
  log::Info("blocks_made_smaller", {{"program", ShortDigest(label.digest)},
                                    {"threads", absl::StrCat(*threads)},
                                    {"why", std::string(loaded.message())}});
  return true;
}

bool ProgramCompiler::FinishAnew(const absl::Status& loaded,
                                 absl::Span<ManagedDevice* const> devices,
                                 const CompileLabel& label, Attempt* attempt) {
  const bool has_finisher =
      !attempt->devices_finish &&
      std::any_of(devices.begin(), devices.end(), [](const ManagedDevice* device) {
        return !device->info().target.finisher.driver.empty();
      });
  if (!drivers::IsFinishedRefused(loaded) || !has_finisher) return false;
  log::Warning(attempt->reads_cache ? "finished_again" : "builds_in_daemon",
               {{"program", ShortDigest(label.digest)},
                {"device", label.device},
                {"why", std::string(loaded.message())}});
  if (std::exchange(attempt->reads_cache, false)) return true;
  // A new image is refused, too. Without a finisher, the cache has other entries.
  attempt->reads_cache = attempt->devices_finish = true;
  return true;
}

drivers::Target ProgramCompiler::TargetOf(const Attempt& attempt, const ManagedDevice& device) {
  drivers::Target target = device.info().target;
  target.limits.threads_per_block =
      std::min(target.limits.threads_per_block, attempt.block_threads_max);
  if (attempt.devices_finish) target.finisher = {};
  return target;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramCompiler::CompileFor(
    const Attempt& attempt, const ProgramRequest& request, const graph::Graph& graph,
    absl::Span<ManagedDevice* const> devices, const CompileLabel& label) {
  request.first_call->Begin("compile");
  const absl::Time start = options_.clock.steady();
  compiler::Options options = CompilerOptions(request);
  OwnersCache owners(options.cache, request.owner);
  if (!request.owner.empty() && options.cache != nullptr) options.cache = &owners;
  TracedCompiler traced(options.kernel_compiler, options_.trace_recorder, [&](absl::Time begin) {
    return MakeSpan(trace::Kind::kKernel, begin, label);
  });
  if (label.number != 0 && options.kernel_compiler != nullptr) options.kernel_compiler = &traced;
  WriteOnlyCache write_only(options.cache);
  if (!attempt.reads_cache) options.cache = &write_only;
  const bool shares_results = graph.sharding == nullptr && request.source->variables().empty();
  std::vector<std::string> names;
  for (const ManagedDevice* device : devices) names.push_back(device->name());
  const Signature signature = Signature::Of(graph, names);
  std::vector<int> same_results;
  std::map<std::string, std::shared_ptr<const compiler::CompiledProgram>> by_target;
  std::vector<ShardedProgram::Member> members;
  for (ManagedDevice* device : devices) {
    const drivers::Target target = TargetOf(attempt, *device);
    if (graph.sharding && graph.sharding->stages) options.stage = static_cast<int>(members.size());
    auto& known = by_target[absl::StrCat(options.stage, " ", target.CacheKey())];
    if (known == nullptr) {
      auto compiled = CompileOnce(request, graph, target, options, label);
      if (!compiled.ok()) return compiled.status();
      if (shares_results) same_results = ShareResults(signature, &*compiled);
      known = std::make_shared<const compiler::CompiledProgram>(*std::move(compiled));
    }
    members.push_back({device, known});
  }
  const double seconds = absl::ToDoubleSeconds(options_.clock.steady() - start);
  options_.metrics->Compiled(seconds);
  request.first_call->Begin("load");
  return Program::Load(
      ShardedProgram(graph.sharding ? graph.sharding->mesh : graph::Mesh(), std::move(members)),
      {label.digest, request.source->key(), request.name, options_.clock.wall(), seconds,
       request.settings, request.owner},
      signature, std::move(same_results));
}

absl::StatusOr<compiler::CompiledProgram> ProgramCompiler::CompileOnce(
    const ProgramRequest& request, const graph::Graph& graph, const drivers::Target& target,
    const compiler::Options& options, const CompileLabel& label) {
  auto compiled = options_.compile(graph, target, options);
  if (label.number != 0 && compiled.ok()) TracePasses(compiled->passes, label);
  // A vendor's compiler that asks for smaller blocks is not a failure yet.
  if (drivers::BlockThreadsMax(compiled.status())) return compiled;
  if (!compiled.ok()) {
    options_.metrics->CompileFailed();
    LogCompileFailed(label, graph, compiled.status(), ShowsGraphOf(label.digest));
    return compiled;
  }
  ReportRefusals(*compiled, label.digest);
  request.first_call->TakeOut(compiled->passes);
  return compiled;
}

trace::Span ProgramCompiler::MakeSpan(trace::Kind kind, absl::Time start,
                                      const CompileLabel& label) const {
  const std::string digest = ShortDigest(label.digest);
  return {.kind = kind,
          .start = start,
          .duration = options_.trace_recorder->now() - start,
          .name = label.name.empty() ? digest : ShortName(label.name),
          .user = label.user,
          .device = label.device,
          .program = digest,
          .number = label.number};
}

void ProgramCompiler::TracePasses(const std::vector<compiler::PassReport>& passes,
                                  const CompileLabel& label) const {
  for (const compiler::PassReport& pass : passes) {
    if (pass.disabled) continue;
    trace::Span span = MakeSpan(trace::Kind::kPass, pass.start, label);
    span.name = pass.pass;
    span.duration = absl::Seconds(pass.seconds);
    options_.trace_recorder->Add(std::move(span));
  }
}

SettingsChange ProgramCompiler::LastSettingsChange() const {
  return options_.last_settings_change ? options_.last_settings_change() : 1;
}

bool ProgramCompiler::IsOutdated(const Program& program, SettingsChange change) const {
  if (!options_.tuned) return false;
  const std::string& owner = program.description().owner;
  for (const compiler::GraphChoices& choices : program.compiled().choices) {
    const drivers::Target& target = program.device().info().target;
    if (!choices.key.empty() &&
        options_.tuned(choices.key, target, owner, change).value_or("") != choices.text)
      return true;
  }
  const auto& disabled = options_.disabled_passes;
  // Without schedules, no kernel has a setting.
  const bool is_plain = std::find(disabled.begin(), disabled.end(), "schedule") != disabled.end();
  if (is_plain) return false;
  const std::vector<compiler::CompiledKernel>& kernels = program.compiled().kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const drivers::Target& target = program.device_of_kernel(i).info().target;
    if (options_.tuned(kernels[i].ir, target, owner, change).value_or("") != kernels[i].setting)
      return true;
  }
  return false;
}

compiler::Options ProgramCompiler::CompilerOptions(const ProgramRequest& request) const {
  compiler::Options options;
  options.cache = options_.kernel_cache;
  options.kernel_compiler = options_.kernel_compiler;
  options.threads = options_.kernel_threads;
  options.disabled_passes = options_.disabled_passes;
  options.dumped_passes = options_.dumped_passes;
  if (options_.tuned) {
    options.tuned = [this, owner = request.owner, change = request.settings](
                        const std::string& key, const drivers::Target& target) {
      return options_.tuned(key, target, owner, change);
    };
    options.choices = options.tuned;
  }
  options.now = options_.clock.steady;
  options.on_kernels = [first_call = request.first_call](int found, int made) {
    first_call->CountKernels(found, made);
  };
  return options;
}

void ProgramCompiler::ReportRefusals(const compiler::CompiledProgram& program,
                                     const std::string& digest) const {
  for (const compiler::GraphChoices& choices : program.choices) ReportChoices(choices, digest);
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    ReportSetting(kernel, digest);
    if (kernel.refusal.empty()) continue;
    options_.metrics->ScheduleRefused();
    log::Error("schedule_refused", {{"program", ShortDigest(digest)},
                                    {"kernel", kernel.image.name},
                                    {"why", kernel.refusal},
                                    {"schedule", kernel.refused_schedule},
                                    {"loops", kernel.ir}});
  }
}

void ProgramCompiler::ReportChoices(const compiler::GraphChoices& choices,
                                    const std::string& digest) {
  if (choices.refusal.empty()) return;
  log::Warning(
      "choices_refused",
      {{"program", ShortDigest(digest)}, {"why", choices.refusal}, {"choices", choices.text}});
}

// A stored setting that cannot be used costs time, but is no defect: it may be from another
// version, or imported.
void ProgramCompiler::ReportSetting(const compiler::CompiledKernel& kernel,
                                    const std::string& digest) {
  if (kernel.setting_refusal.empty() && kernel.setting_ignored.empty()) return;
  const bool is_refused = !kernel.setting_refusal.empty();
  log::Warning(is_refused ? "setting_refused" : "setting_used_partly",
               {{"program", ShortDigest(digest)},
                {"kernel", kernel.image.name},
                {"why", is_refused ? kernel.setting_refusal : kernel.setting_ignored},
                {"setting", kernel.setting}});
}

absl::Status ProgramCompiler::CheckRunTime(const Program& program) const {
  const double seconds = program.predicted_seconds();
  if (options_.run_seconds_max == 0 || seconds <= options_.run_seconds_max) return absl::OkStatus();
  const compiler::CompiledProgram& compiled = program.compiled();
  double operations = 0;
  double bytes = 0;
  for (const compiler::KernelCall& call : compiled.calls) {
    operations += static_cast<double>(compiled.kernels[call.kernel].image.flops);
    bytes += static_cast<double>(compiled.kernels[call.kernel].image.bytes);
  }
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "a run of the program would take about ", seconds, " seconds (", operations,
          " operations on ", bytes, " bytes); the limit is ", options_.run_seconds_max,
          ": use smaller shapes, split the work into several runs, or start kilnd with a higher "
          "--run_seconds_limit")),
      "RUN_TOO_LONG",
      {{"seconds", absl::StrCat(seconds)}, {"limit", absl::StrCat(options_.run_seconds_max)}});
}

bool ProgramCompiler::ShowsGraphOf(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  return shown_.size() < kShownGraphsMax && shown_.insert(digest).second;
}

}  // namespace kiln::runtime
