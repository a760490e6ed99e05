#include "server/runtime/program_compiler.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/compile_log.h"

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

// Charges the payer as long as the program lives, no matter how many others use it.
absl::Status ChargeProgram(const Payer& payer, Program* program) {
  if (!payer.account()) return absl::OkStatus();
  auto charge = payer.Reserve(memory::Use::kPrograms, program->host_bytes());
  if (!charge.ok()) return charge.status();
  program->Keep(*std::move(charge));
  return absl::OkStatus();
}

// Returns whether the program could not be loaded because its blocks are too large; reduces those
// of `target` if so. The registers of a thread are known only after a vendor's compiler has run.
bool ShrinkBlocks(const absl::Status& loaded, const CompileLabel& label, drivers::Target* target) {
  const std::optional<int> threads = drivers::BlockThreadsMax(loaded);
  if (!threads || *threads < 1 || *threads >= target->limits.threads_per_block) return false;
  target->limits.threads_per_block = *threads;
  log::Info("blocks_made_smaller", {{"program", ShortDigest(label.digest)},
                                    {"threads", absl::StrCat(*threads)},
                                    {"why", std::string(loaded.message())}});
  return true;
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
  if (graph.sharding != nullptr) return CompileGang(request, graph, digest);
  if (request.members.size() > 1) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "the graph has no mesh, but ", request.members.size(), " devices are named; name one")),
        "WRONG_DEVICE_COUNT");
  }
  ManagedDevice& device = *request.device;
  const Signature signature = Signature::Of(graph);
  if (absl::Status status = CheckSignatureFits(signature, device); !status.ok()) return status;
  const CompileLabel label{digest, request.name, device.name(), UserOf(request)};
  LogCompileStarted(label, graph);
  Attempt attempt{.target = device.info().target};
  auto program = CompileFor(attempt, request, graph, signature, label);
  // Each attempt has smaller blocks or one way less to finish images, so the loop ends.
  while (ShrinkBlocks(program.status(), label, &attempt.target) ||
         FinishAnew(program.status(), label, &attempt))
    program = CompileFor(attempt, request, graph, signature, label);
  if (!program.ok()) return program;
  if (absl::Status status = CheckRunTime(**program); !status.ok()) return status;
  absl::Status charged = ChargeProgram(request.payer, program->get());
  if (!charged.ok()) return charged;
  LogCompiled(label, (*program)->compiled(), (*program)->description().compile_seconds);
  absl::Status fits =
      CheckFits("the program's intermediate and final results",
                (*program)->arena_bytes() + (*program)->signature().result_bytes(), device);
  if (!fits.ok()) return fits;
  (*program)->SetFirstCall(request.first_call);
  return program;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramCompiler::CompileGang(const ProgramRequest& request,
                                                                      const graph::Graph& graph,
                                                                      const std::string& digest) {
  std::vector<std::string> names;
  std::vector<ManagedDevice*> devices = request.members;
  if (devices.empty()) devices = {request.device};
  for (const ManagedDevice* member : devices) names.push_back(member->name());
  if (static_cast<int64_t>(names.size()) != graph::NumDevices(graph.sharding->mesh)) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "the graph's mesh has ", graph::NumDevices(graph.sharding->mesh), " places, but ",
            names.size(), " devices are named; name one for each place")),
        "WRONG_DEVICE_COUNT");
  }
  const CompileLabel label{digest, request.name, request.DeviceNames(), UserOf(request)};
  LogCompileStarted(label, graph);
  request.first_call->Begin("compile");
  const absl::Time start = options_.clock.steady();
  OwnersCache owners(options_.kernel_cache, request.owner);
  std::map<std::string, std::shared_ptr<const compiler::CompiledProgram>> by_target;
  std::vector<Gang::Member> members;
  for (ManagedDevice* member : devices) {
    const drivers::Target& target = member->info().target;
    compiler::Options options = CompilerOptions(request);
    if (!request.owner.empty() && options.cache != nullptr) options.cache = &owners;
    if (graph.sharding->stages) options.stage = static_cast<int>(members.size());
    auto& known = by_target[absl::StrCat(options.stage, " ", target.CacheKey())];
    if (known == nullptr) {
      auto compiled = options_.compile(graph, target, options);
      if (!compiled.ok()) {
        options_.metrics->CompileFailed();
        LogCompileFailed(label, graph, compiled.status(), ShowsGraphOf(label.digest));
        return compiled.status();
      }
      request.first_call->TakeOut(compiled->passes);
      ReportRefusals(*compiled, label.digest);
      known = std::make_shared<const compiler::CompiledProgram>(*std::move(compiled));
    }
    members.push_back({member, known});
  }
  const double seconds = absl::ToDoubleSeconds(options_.clock.steady() - start);
  options_.metrics->Compiled(seconds);
  request.first_call->Begin("load");
  auto program = Program::LoadGang(
      std::make_unique<Gang>(graph.sharding->mesh, std::move(members)),
      {label.digest, request.source->key(), request.name, options_.clock.wall(), seconds},
      Signature::Of(graph, names));
  if (!program.ok()) return program;
  if (absl::Status status = CheckRunTime(**program); !status.ok()) return status;
  absl::Status charged = ChargeProgram(request.payer, program->get());
  if (!charged.ok()) return charged;
  LogCompiled(label, (*program)->compiled(), seconds);
  (*program)->SetFirstCall(request.first_call);
  return program;
}

bool ProgramCompiler::FinishAnew(const absl::Status& loaded, const CompileLabel& label,
                                 Attempt* attempt) {
  if (!drivers::IsFinishedRefused(loaded) || attempt->target.finisher.driver.empty()) return false;
  log::Warning(attempt->reads_cache ? "finished_again" : "builds_in_daemon",
               {{"program", ShortDigest(label.digest)},
                {"device", label.device},
                {"why", std::string(loaded.message())}});
  if (std::exchange(attempt->reads_cache, false)) return true;
  // A new image is refused, too. Without a finisher, the cache has other entries.
  *attempt = {.target = attempt->target};
  attempt->target.finisher = {};
  return true;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramCompiler::CompileFor(const Attempt& attempt,
                                                                     const ProgramRequest& request,
                                                                     const graph::Graph& graph,
                                                                     const Signature& signature,
                                                                     const CompileLabel& label) {
  request.first_call->Begin("compile");
  const absl::Time start = options_.clock.steady();
  compiler::Options options = CompilerOptions(request);
  OwnersCache owners(options.cache, request.owner);
  if (!request.owner.empty() && options.cache != nullptr) options.cache = &owners;
  WriteOnlyCache write_only(options.cache);
  if (!attempt.reads_cache) options.cache = &write_only;
  auto compiled = options_.compile(graph, attempt.target, options);
  // A vendor's compiler that asks for smaller blocks is not a failure yet.
  if (drivers::BlockThreadsMax(compiled.status())) return compiled.status();
  if (!compiled.ok()) {
    options_.metrics->CompileFailed();
    LogCompileFailed(label, graph, compiled.status(), ShowsGraphOf(label.digest));
    return compiled.status();
  }
  const double seconds = absl::ToDoubleSeconds(options_.clock.steady() - start);
  options_.metrics->Compiled(seconds);
  ReportRefusals(*compiled, label.digest);
  request.first_call->TakeOut(compiled->passes);
  request.first_call->Begin("load");
  return Program::Load(
      *request.device,
      {label.digest, request.source->key(), request.name, options_.clock.wall(), seconds},
      signature, std::move(*compiled), /*shares_results=*/request.source->variables().empty());
}

compiler::Options ProgramCompiler::CompilerOptions(const ProgramRequest& request) const {
  compiler::Options options;
  options.cache = options_.kernel_cache;
  options.kernel_compiler = options_.kernel_compiler;
  options.threads = options_.kernel_threads;
  options.disabled_passes = options_.disabled_passes;
  options.dumped_passes = options_.dumped_passes;
  options.now = options_.clock.steady;
  options.on_kernels = [first_call = request.first_call](int found, int made) {
    first_call->CountKernels(found, made);
  };
  return options;
}

void ProgramCompiler::ReportRefusals(const compiler::CompiledProgram& program,
                                     const std::string& digest) const {
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    if (kernel.refusal.empty()) continue;
    options_.metrics->ScheduleRefused();
    log::Error("schedule_refused", {{"program", ShortDigest(digest)},
                                    {"kernel", kernel.image.name},
                                    {"why", kernel.refusal},
                                    {"schedule", kernel.refused_schedule},
                                    {"loops", kernel.ir}});
  }
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
