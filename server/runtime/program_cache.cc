#include "server/runtime/program_cache.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/compile_log.h"

namespace kiln::runtime {
namespace {

std::string HexSha256(const std::string& text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
             EVP_sha256(), nullptr);
  digest.resize(size);
  return absl::BytesToHexString(digest);
}

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

// What compiling takes for each primitive, from the graph to machine code; measured with graphs of
// many small kernels, the dearest there are.
constexpr int64_t kCompilationBytes = 6 << 10;

// Of those that the compiler failed on: a client that asks again and again must not fill the log.
constexpr size_t kMostShownGraphs = 100;

std::shared_ptr<memory::Charge> OpenCharge(const std::shared_ptr<memory::Account>& account) {
  auto charge = std::make_shared<memory::Charge>();
  if (account) *charge = account->Open(memory::Use::kCompilation);
  return charge;
}

Grow GrowsBy(const std::shared_ptr<memory::Charge>& charge) {
  return [charge, before = charge->bytes()](int64_t primitives) {
    return charge->Resize(before + primitives * kCompilationBytes);
  };
}

absl::Status ShuttingDown() {
  return errors::WithReason(absl::UnavailableError("daemon is shutting down"), "SHUTTING_DOWN");
}

void AddPayer(const std::shared_ptr<memory::Account>& account,
              std::vector<std::weak_ptr<memory::Account>>* payers) {
  const bool is_there = std::any_of(payers->begin(), payers->end(),
                                    [&](const auto& payer) { return payer.lock() == account; });
  if (!is_there) payers->push_back(account);
}

// What was refused to one session need not be refused to another.
bool LacksHostMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && errors::Reason(status) == "HOST_MEMORY";
}

absl::Status CheckSignatureFits(const Signature& signature, const ManagedDevice& device) {
  absl::Status status = CheckFits("the program's results", signature.result_bytes(), device);
  for (const TensorTypePointer& type : signature.inputs) {
    if (status.ok())
      status = CheckFits(absl::StrCat("an input's ", type->ToString()), type->bytes(), device);
  }
  return status;
}

}  // namespace

ProgramCache::ProgramCache(Options options)
    : options_(std::move(options)),
      threads_(options_.compile_threads, options_.compile_threads_of_one) {}
ProgramCache::~ProgramCache() = default;

std::shared_ptr<ProgramFuture> ProgramCache::Get(std::shared_ptr<const GraphSource> source,
                                                 const Bindings& bindings, ManagedDevice& device,
                                                 const std::string& name,
                                                 std::shared_ptr<memory::Account> account) {
  Request request{{device.name(), source->key(), bindings},
                  source,
                  &device,
                  ShortName(name),
                  nullptr,
                  account,
                  OpenCharge(account)};
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = by_source_[request.key];
    entry.used = ++uses_;
    options_.metrics->ProgramCacheLookup(entry.future != nullptr);
    if (entry.future) {
      if (entry.compiling) AddPayer(account, &entry.payers);
      return entry.future;
    }
    entry.future = std::make_shared<ProgramFuture>();
    entry.compiling = true;
    entry.payers.push_back(account);
    request.future = entry.future;
    EvictIdle();
  }
  auto future = request.future;
  Schedule(std::move(request));
  return future;
}

void ProgramCache::Schedule(Request request) {
  const void* owner = request.account.get();
  threads_.Schedule(owner, [this, request = std::move(request)] { Compile(request); });
}

void ProgramCache::Check(std::shared_ptr<const GraphSource> source,
                         std::shared_ptr<memory::Account> account,
                         std::function<void(absl::Status)> done) {
  const void* owner = account.get();
  threads_.Schedule(
      owner, [source = std::move(source), charge = OpenCharge(account), done = std::move(done)] {
        done(source->Build(SmallestBindings(source->variables()), GrowsBy(charge)).status());
      });
}

Grow ProgramCache::ChargeFor(const Request& request) { return GrowsBy(request.compiling); }

void ProgramCache::StopCompiling() { stopped_ = true; }

void ProgramCache::Compile(const Request& request) {
  if (stopped_) {
    return Finish(request, ShuttingDown());
  }
  if (request.source->variables().empty()) {
    const auto graph = request.source->Build({}, ChargeFor(request));
    if (!graph.ok()) return Finish(request, graph.status());
    return CompileAlone(request, *graph);
  }
  const std::shared_ptr<GeneralFuture> general = GeneralOf(request);
  const auto bind = [this, request, general] { BindGeneral(request, *general); };
  if (!general->AddWaiter(bind)) bind();
}

void ProgramCache::CompileAlone(const Request& request, const graph::Graph& graph) {
  CompileOnce(request, graph, request.future,
              [this, request](auto result) { Finish(request, std::move(result)); });
}

void ProgramCache::CompileOnce(const Request& request, const graph::Graph& graph,
                               std::shared_ptr<ProgramFuture> future, const Finished& finished) {
  const std::string digest =
      HexSha256(absl::StrCat(graph::Print(graph), "\n", request.device->info().target.CacheKey()));
  std::shared_ptr<ProgramFuture> same;
  {
    absl::MutexLock lock(&mutex_);
    auto [entry, is_new] = by_digest_.try_emplace({request.device->name(), digest}, future);
    if (!is_new) same = entry->second;
  }
  if (same) {
    const auto take = [this, request, graph, future, finished, same] {
      if (!LacksHostMemory(same->result().status())) return finished(same->result());
      // On a thread of its own turn: this one is of whoever failed.
      threads_.Schedule(request.account.get(), [this, request, graph, future, finished] {
        if (stopped_) return finished(ShuttingDown());
        CompileOnce(request, graph, future, finished);
      });
    };
    if (!same->AddWaiter(take)) take();
    return;
  }
  auto program = CompileGraph(request, graph, digest);
  if (program.ok()) return finished(Bound(*std::move(program)));
  {
    absl::MutexLock lock(&mutex_);
    by_digest_.erase({request.device->name(), digest});
  }
  finished(program.status());
}

void ProgramCache::ReportRefusals(const compiler::CompiledProgram& program,
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

absl::StatusOr<std::shared_ptr<Program>> ProgramCache::CompileGraph(const Request& request,
                                                                    const graph::Graph& graph,
                                                                    const std::string& digest) {
  ManagedDevice& device = *request.device;
  Signature signature = Signature::Of(graph);
  if (absl::Status status = CheckSignatureFits(signature, device); !status.ok()) return status;
  const CompileLabel label{digest, request.name, device.name()};
  LogCompileStarted(label, graph);
  const absl::Time start = options_.now();
  compiler::Options options;
  options.cache = options_.kernel_cache;
  options.threads = options_.kernel_threads;
  options.disabled_passes = options_.disabled_passes;
  options.dumped_passes = options_.dumped_passes;
  options.now = options_.now;
  auto compiled = options_.compile(graph, device.info().target, options);
  if (!compiled.ok()) {
    options_.metrics->CompileFailed();
    LogCompileFailed(label, graph, compiled.status(), ShowsGraphOf(digest));
    return compiled.status();
  }
  const double seconds = absl::ToDoubleSeconds(options_.now() - start);
  options_.metrics->Compiled(seconds);
  ReportRefusals(*compiled, digest);
  auto program =
      Program::Load(device, {digest, request.source->key(), request.name, options_.now(), seconds},
                    std::move(signature), std::move(*compiled));
  if (!program.ok()) return program;
  if (absl::Status status = CheckRunTime(**program); !status.ok()) return status;
  if (request.account) {
    auto charge = request.account->Reserve(memory::Use::kPrograms, (*program)->host_bytes());
    if (!charge.ok()) return charge.status();
    (*program)->Keep(*std::move(charge));
  }
  LogCompiled(label, (*program)->compiled(), seconds);
  absl::Status fits =
      CheckFits("the program's intermediate and final results",
                (*program)->arena_bytes() + (*program)->signature().result_bytes(), device);
  if (!fits.ok()) return fits;
  return program;
}

absl::Status ProgramCache::CheckRunTime(const Program& program) const {
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

void ProgramCache::Finish(const Request& request,
                          absl::StatusOr<std::shared_ptr<const BoundProgram>> result) {
  std::optional<Request> again;
  {
    absl::MutexLock lock(&mutex_);
    const auto entry = by_source_.find(request.key);
    if (entry != by_source_.end() && LacksHostMemory(result.status())) {
      again = AtNextExpense(request, &entry->second);
    }
    if (!again && !result.ok()) {
      // Not kept: what failed for want of memory or a file may succeed the next time.
      by_source_.erase(request.key);
      ForgetGeneral(request.key);
    } else if (!again && entry != by_source_.end()) {
      entry->second.compiling = false;
      entry->second.payers.clear();
    }
  }
  if (again) return Schedule(*std::move(again));
  request.future->Resolve(std::move(result));
}

bool ProgramCache::ShowsGraphOf(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  return shown_.size() < kMostShownGraphs && shown_.insert(digest).second;
}

std::optional<ProgramCache::Request> ProgramCache::AtNextExpense(const Request& request,
                                                                 Entry* entry) {
  while (entry->next_payer < entry->payers.size()) {
    auto account = entry->payers[entry->next_payer++].lock();
    if (!account) continue;  // its session has ended
    Request again = request;
    again.account = std::move(account);
    again.compiling = OpenCharge(again.account);
    return again;
  }
  return std::nullopt;
}

std::vector<std::shared_ptr<Program>> ProgramCache::List() const {
  std::vector<std::shared_ptr<Program>> programs;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [digest, future] : by_digest_) {
      if (future->resolved() && future->result().ok())
        programs.push_back((*future->result())->program);
    }
  }
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) {
    return a->description().compiled < b->description().compiled;
  });
  return programs;
}

absl::StatusOr<std::shared_ptr<Program>> ProgramCache::Find(const std::string& prefix) const {
  std::shared_ptr<Program> found;
  for (const auto& program : List()) {
    const Program::Description& description = program->description();
    if (!absl::StartsWith(description.digest, prefix) &&
        !absl::StartsWith(description.source_key, prefix))
      continue;
    if (found) {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat(
              Quoted(prefix), " begins more than one program's digest; give more digits")),
          "AMBIGUOUS_PROGRAM");
    }
    found = program;
  }
  if (found) return found;
  return errors::WithReason(
      absl::NotFoundError(absl::StrCat("no loaded program's digest begins with ", Quoted(prefix))),
      "UNKNOWN_PROGRAM", {{"program", prefix}});
}

int64_t ProgramCache::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(by_digest_.size());
}

}  // namespace kiln::runtime
