#include "server/runtime/program_cache.h"

#include <openssl/evp.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

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

bool Names(const ProgramFuture& future, const Program& program) {
  return future.resolved() && future.result().ok() && (*future.result())->program.get() == &program;
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
    : options_(std::move(options)), threads_(options_.compile_threads) {}
ProgramCache::~ProgramCache() = default;

std::shared_ptr<ProgramFuture> ProgramCache::Get(std::shared_ptr<const GraphSource> source,
                                                 const Bindings& bindings, ManagedDevice& device,
                                                 const std::string& name) {
  Request request{
      {device.name(), source->key(), bindings}, source, &device, ShortName(name), nullptr};
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = by_source_[request.key];
    entry.used = ++uses_;
    options_.metrics->ProgramCacheLookup(entry.future != nullptr);
    if (entry.future) return entry.future;
    entry.future = std::make_shared<ProgramFuture>();
    request.future = entry.future;
    EvictIdle();
  }
  auto future = request.future;
  threads_.Schedule([this, request = std::move(request)] { Compile(request); });
  return future;
}

void ProgramCache::Check(std::shared_ptr<const GraphSource> source,
                         std::function<void(absl::Status)> done) {
  threads_.Schedule([source = std::move(source), done = std::move(done)] {
    done(source->Build(SmallestBindings(source->variables())).status());
  });
}

void ProgramCache::StopCompiling() { stopped_ = true; }

void ProgramCache::Compile(const Request& request) {
  if (stopped_) {
    return Finish(request, errors::WithReason(absl::UnavailableError("daemon is shutting down"),
                                              "SHUTTING_DOWN"));
  }
  if (request.source->variables().empty()) {
    const auto graph = request.source->Build({});
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
    auto [entry, is_new] =
        by_digest_.try_emplace({request.device->name(), digest}, std::move(future));
    if (!is_new) same = entry->second;
  }
  if (same) {
    const auto take = [finished, same] { finished(same->result()); };
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
    log::Error("schedule_refused", {{"program", digest.substr(0, 12)},
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
  const absl::Time start = absl::Now();
  compiler::Options options;
  options.cache = options_.kernel_cache;
  options.threads = options_.kernel_threads;
  auto compiled = options_.compile(graph, device.info().target, options);
  if (!compiled.ok()) {
    options_.metrics->CompileFailed();
    return compiled.status();
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  options_.metrics->Compiled(seconds);
  ReportRefusals(*compiled, digest);
  auto program =
      Program::Load(device, {digest, request.source->key(), request.name, options_.now(), seconds},
                    std::move(signature), std::move(*compiled));
  if (!program.ok()) return program;
  log::Info("program_compiled", {{"program", digest.substr(0, 12)},
                                 {"name", request.name},
                                 {"device", device.name()},
                                 {"kernels", absl::StrCat((*program)->compiled().calls.size())},
                                 {"seconds", absl::StrCat(seconds)}});
  absl::Status fits =
      CheckFits("the program's intermediate and final results",
                (*program)->arena_bytes() + (*program)->signature().result_bytes(), device);
  if (!fits.ok()) return fits;
  return program;
}

void ProgramCache::Finish(const Request& request,
                          absl::StatusOr<std::shared_ptr<const BoundProgram>> result) {
  if (!result.ok()) {
    // Not kept: what failed for want of memory or a file may succeed the next time.
    absl::MutexLock lock(&mutex_);
    by_source_.erase(request.key);
    ForgetGeneral(request.key);
  }
  request.future->Resolve(std::move(result));
}

void ProgramCache::EvictIdle() {
  const int64_t own = static_cast<int64_t>(by_source_.size()) - shared_;
  if (own > options_.max_idle_programs) EvictIdle(false, own - options_.max_idle_programs);
  // Many at once, since each look for them goes through all.
  if (shared_ > options_.max_idle_bindings) EvictIdle(true, options_.max_idle_bindings / 4);
}

void ProgramCache::EvictIdle(bool shared, int64_t surplus) {
  std::vector<std::pair<int64_t, std::map<Key, Entry>::iterator>> idle;
  for (auto entry = by_source_.begin(); entry != by_source_.end(); ++entry) {
    if (entry->second.shared != shared) continue;
    if (IsIdle(std::get<0>(entry->first), entry->second.future))
      idle.emplace_back(entry->second.used, entry);
  }
  std::sort(idle.begin(), idle.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < std::min<size_t>(surplus, idle.size()); ++i) Forget(idle[i].second);
}

bool ProgramCache::IsIdle(const std::string& device,
                          const std::shared_ptr<ProgramFuture>& future) const {
  if (!future->resolved()) return false;
  int own = 1;  // by_source_'s; of the sources that share a digest, by_digest_ names one
  if (future->result().ok()) {
    const auto named =
        by_digest_.find({device, (*future->result())->program->description().digest});
    if (named != by_digest_.end() && named->second == future) ++own;
  }
  return future.use_count() <= own;
}

void ProgramCache::Forget(std::map<Key, Entry>::iterator entry) {
  const Key key = entry->first;
  const std::shared_ptr<ProgramFuture> future = std::move(entry->second.future);
  if (entry->second.shared) --shared_;
  by_source_.erase(entry);
  ForgetGeneral(key);
  if (future->result().ok()) DropUnnamed(std::get<0>(key), (*future->result())->program);
}

void ProgramCache::ForgetGeneral(const Key& key) {
  const auto& [device, source, bindings] = key;
  const auto next = by_source_.lower_bound(Key(device, source, Bindings()));
  const bool left = next != by_source_.end() && std::get<0>(next->first) == device &&
                    std::get<1>(next->first) == source;
  if (left) return;
  std::vector<std::shared_ptr<GeneralFuture>> dropped;
  for (auto general = generals_.lower_bound(GeneralKey(device, source, {}));
       general != generals_.end() && std::get<0>(general->first) == device &&
       std::get<1>(general->first) == source;) {
    dropped.push_back(std::move(general->second));
    general = generals_.erase(general);
  }
  for (const auto& general : dropped) {
    if (general->resolved() && general->result().ok()) {
      DropUnnamed(device, (*general->result())->program);
    }
  }
}

void ProgramCache::DropUnnamed(const std::string& device, const std::shared_ptr<Program>& program) {
  for (const auto& [key, general] : generals_) {
    const bool names =
        general->resolved() && general->result().ok() && (*general->result())->program == program;
    if (names) return;
  }
  for (const auto& [key, other] : by_source_) {
    if (Names(*other.future, *program)) return;
  }
  const auto named = by_digest_.find({device, program->description().digest});
  if (named != by_digest_.end() && Names(*named->second, *program)) by_digest_.erase(named);
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
      return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
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
