#include "server/runtime/cache/program_cache.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::runtime {
namespace {

ProgramsBySource::Key KeyOf(const ProgramRequest& request, const Bindings& bindings) {
  const std::string settings = request.is_old ? absl::StrCat(" settings ", request.settings) : "";
  return {request.DeviceNames(), absl::StrCat(request.source->key(), request.owner, settings),
          bindings};
}

ProgramsBySource::Key KeyOf(const ProgramRequest& request) {
  return KeyOf(request, request.bindings);
}

}  // namespace

ProgramCache::ProgramCache(Options options)
    : metrics_(options.metrics),
      now_(options.clock.steady),
      shared_(options.shared),
      compiler_(std::move(static_cast<ProgramCompiler::Options&>(options))),
      by_digest_(&compiler_, &threads_),
      settings_(compiler_.LastSettingsChange()),
      by_source_({options.idle_programs_max, options.idle_bindings_max}),
      threads_(options.threads) {}
ProgramCache::~ProgramCache() = default;

std::shared_ptr<ProgramFuture> ProgramCache::Get(
    std::shared_ptr<const GraphSource> source, const Bindings& bindings, ManagedDevice& device,
    const std::string& name, std::shared_ptr<memory::Account> account, Admission admission,
    std::shared_ptr<FirstCall> first_call, SettingsChange settings) {
  return Get(std::move(source), bindings, std::vector<ManagedDevice*>{&device}, name,
             std::move(account), admission, std::move(first_call), settings);
}

std::shared_ptr<ProgramFuture> ProgramCache::Get(
    std::shared_ptr<const GraphSource> source, const Bindings& bindings,
    std::vector<ManagedDevice*> devices, const std::string& name,
    std::shared_ptr<memory::Account> account, Admission admission,
    std::shared_ptr<FirstCall> first_call, SettingsChange settings) {
  KILN_CHECK_NE(source, nullptr);
  KILN_CHECK(!devices.empty());
  Request request{{std::move(source), bindings, devices.front(), ShortName(name),
                   Payer(std::move(account), admission)},
                  {},
                  {}};
  request.members = std::move(devices);
  if (!shared_) request.owner = UserOf(request);
  request.settings = settings;
  ProgramsBySource::Dropped dropped;  // outlives the lock: programs unload
  {
    absl::MutexLock lock(&mutex_);
    ProgramsBySource::Entry* const known = Find(&request);
    metrics_->ProgramCacheLookup(known != nullptr);
    if (known != nullptr) {
      if (known->compiling) Join(*known, request.payer.account(), admission);
      return known->future;
    }
    const ProgramsBySource::Key key = KeyOf(request);
    ProgramsBySource::Entry& entry = by_source_.Add(key);
    entry.first_change = entry.last_change = request.settings;
    entry.is_old = request.is_old;
    entry.payers.Add(request.payer.account(), admission);
    request.settings_changes = settings_changes_;
    if (!entry.variables) entry.variables = std::make_shared<VariablePrograms>(&by_digest_);
    request.variables = entry.variables;
    request.future = entry.future;
    if (first_call == nullptr) {
      first_call = std::make_shared<FirstCall>(now_, "wait_for_thread");
    } else {
      first_call->Begin("wait_for_thread");
    }
    request.first_call = request.future->first_call = std::move(first_call);
    entry.compile = Task(request);
    // With the lock held, so that no other request can wait for one that is refused.
    const absl::Status asked = Schedule(request.payer.account().get(), admission, entry.compile);
    if (asked.ok()) {
      dropped = by_source_.EvictIdle();
    } else {
      by_source_.Erase(key);
      request.future->Resolve(asked);
    }
  }
  return request.future;
}

ProgramsBySource::Entry* ProgramCache::Find(Request* request) {
  const SettingsChange newest = settings();
  // A later one was before the store was lost.
  const bool is_newest = request->settings == kNewestSettings || request->settings >= newest;
  if (is_newest) request->settings = newest;
  ProgramsBySource::Entry* entry = by_source_.Use(KeyOf(*request));
  if (entry == nullptr && is_newest) return nullptr;
  if (entry != nullptr && entry->first_change <= request->settings &&
      request->settings <= entry->last_change)
    return entry;
  // The usual entry is missing or has other settings, perhaps because it is still compiling.
  request->is_old = true;
  return by_source_.Use(KeyOf(*request));
}

void ProgramCache::Join(ProgramsBySource::Entry& entry,
                        const std::shared_ptr<memory::Account>& account, Admission admission) {
  // The first user's queue may be long. If this user's queue is full, the program is made in the
  // first user's turn.
  KILN_CHECK(entry.compile != nullptr);
  if (entry.payers.Add(account, admission))
    Schedule(account.get(), admission, entry.compile).IgnoreError();
}

absl::Status ProgramCache::Schedule(const memory::Account* account, Admission admission,
                                    std::function<void()> task) {
  if (admission == Admission::kAsked) return threads_.Ask(account, std::move(task));
  threads_.Schedule(account, std::move(task));
  return absl::OkStatus();
}

std::function<void()> ProgramCache::Task(Request request) {
  struct Once {
    std::optional<Request> request;  // the first call takes it, so later ones keep nothing
    std::atomic<bool> begun{false};
  };
  auto once = std::make_shared<Once>();
  once->request = std::move(request);
  return [this, once = std::move(once)] {
    if (!once->begun.exchange(true)) Compile(*std::exchange(once->request, std::nullopt));
  };
}

void ProgramCache::Check(std::shared_ptr<const GraphSource> source,
                         std::shared_ptr<memory::Account> account,
                         std::function<void(absl::Status)> done, Admission admission) {
  const memory::Account* owner = account.get();
  const absl::Status asked = Schedule(
      owner, admission,
      [source = std::move(source), payer = Payer(std::move(account), admission), done] {
        done(source->Build(SmallestBindings(source->variables()), payer.ForNextGraph(), nullptr)
                 .status());
      });
  if (!asked.ok()) done(asked);
}

void ProgramCache::Compile(const Request& request) {
  if (absl::Status status = threads_.status(); !status.ok()) return Finish(request, status, false);
  request.first_call->Begin("build_graph");
  if (request.source->variables().empty()) {
    const auto graph = request.Build();
    if (!graph.ok()) return Finish(request, graph.status(), false);
    return CompileAlone(request, *graph);
  }
  request.variables->Get(request,
                         [this, request](const auto& program) { BindOrCompile(request, program); });
}

void ProgramCache::CompileAlone(const Request& request, const graph::Graph& graph) {
  by_digest_.GetOrCompile(request, graph, request.future, [this, request](Result result) {
    Finish(request, std::move(result), false);
  });
}

void ProgramCache::BindOrCompile(const Request& request, const VariablePrograms::Result& program) {
  request.first_call->Begin("bind");
  ops::FormSizes sizes = program.ok() ? (*program)->form_sizes() : ops::FormSizes();
  auto graph = request.Build(program.ok() ? &sizes : nullptr);
  if (!graph.ok()) return Finish(request, graph.status(), false);
  Result bound = program.ok() ? (*program)->BindAt(request.bindings, *graph)
                              : absl::NotFoundError("no program for all values");
  // The program for all values is of those who asked first.
  if (bound.ok() && (*bound)->program->description().settings != request.settings &&
      compiler_.IsOutdated(*(*bound)->program, request.settings))
    bound = absl::NotFoundError("the program for all values has other settings");
  metrics_->ProgramBound(bound.ok());
  if (!bound.ok()) {
    // Alone, these values need no forms that are right for others.
    if (program.ok()) graph = request.Build();
    if (!graph.ok()) return Finish(request, graph.status(), false);
    return CompileAlone(request, *graph);
  }
  Finish(request, std::move(bound), true);
  BindAhead(request, **program);
}

void ProgramCache::Finish(const Request& request, Result result, bool shared) {
  Payer next(nullptr);
  while (!TryEnd(request, result, shared, &next)) {
  }
  if (!next.account()) {
    // If the program existed already, its first run does not belong to this call.
    if (result.ok() && (*result)->program->first_call() == request.first_call) {
      request.first_call->Begin(kWaitForRun);
    } else {
      request.first_call->End();
    }
    request.future->Resolve(std::move(result));
    return;
  }
  request.first_call->Begin("wait_for_thread");
  Request again = request;
  again.payer = std::move(next);
  const memory::Account* const payer = again.payer.account().get();
  threads_.Schedule(payer, Task(std::move(again)));
}

bool ProgramCache::TryEnd(const Request& request, const Result& result, bool shared, Payer* next) {
  const std::shared_ptr<Program> program = result.ok() ? (*result)->program : nullptr;
  SettingsChange newest = 0;
  int64_t changes = 0;
  {
    absl::MutexLock lock(&mutex_);
    newest = settings();
    changes = settings_changes_;
  }
  // Reads the store, so it is not done with the lock held.
  const bool is_outdated = program && !request.is_old && changes != request.settings_changes &&
                           compiler_.IsOutdated(*program, newest);
  if (is_outdated) {
    by_digest_.Supersede({program});
    request.variables->Forget();
  }
  ProgramsBySource::Dropped replaced;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  if (program && !request.is_old && changes != settings_changes_) return false;
  const ProgramsBySource::Key key = KeyOf(request);
  // Not null: entries that compile are not evicted.
  ProgramsBySource::Entry* const entry = by_source_.Find(key);
  KILN_CHECK(entry != nullptr && entry->compiling) << key.source;
  KILN_CHECK_EQ(entry->future, request.future) << key.source;
  if (LacksHostMemory(result.status())) *next = entry->payers.Next();
  if (result.ok() && !is_outdated) {
    replaced = by_source_.EndCompiling(key, shared, *result);
    if (!request.is_old) entry->last_change = newest;
  } else if (!next->account()) {
    // Not kept: a failure for lack of memory or of a file may not happen the next time, and an
    // outdated program is for those who asked for it before.
    by_source_.Erase(key);
  }
  return true;
}

void ProgramCache::BindAhead(const Request& request, const VariableProgram& program) {
  const std::vector<Bindings> following = program.Following(request.bindings);
  if (following.empty() || !Knows(KeyOf(request, Preceding(request.bindings)))) return;
  for (const Bindings& bindings : following) {
    const ProgramsBySource::Key key = KeyOf(request, bindings);
    if (Knows(key)) continue;
    // Not charged to an account: no client asked for it.
    ops::FormSizes sizes = program.form_sizes();
    const auto graph = request.source->Build(bindings, {}, &sizes);
    if (!threads_.status().ok() || !graph.ok()) return;
    Result bound = program.BindAt(bindings, *graph);
    if (!bound.ok()) return;
    absl::MutexLock lock(&mutex_);
    if (request.settings_changes != settings_changes_) return;
    if (!by_source_.AddShared(key, *bound)) continue;
    ProgramsBySource::Entry* const entry = by_source_.Find(key);
    entry->first_change = entry->last_change = request.settings;
    entry->is_old = request.is_old;
    metrics_->ProgramBound(true);
  }
}

bool ProgramCache::Knows(const ProgramsBySource::Key& key) {
  absl::MutexLock lock(&mutex_);
  return by_source_.Find(key) != nullptr;
}

void ProgramCache::DropUnused(absl::Time now, absl::Duration limit) {
  ProgramsBySource::Dropped dropped;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  dropped = by_source_.DropUnused(now, limit);
}

void ProgramCache::DropOutdated() {
  {
    absl::MutexLock lock(&mutex_);
    ++settings_changes_;
    settings_.store(compiler_.LastSettingsChange(), std::memory_order_release);
  }
  const SettingsChange newest = settings();
  std::vector<std::shared_ptr<Program>> outdated = List();
  std::erase_if(outdated, [&](const auto& each) { return !compiler_.IsOutdated(*each, newest); });
  DropOutdated(outdated);
  absl::MutexLock lock(&mutex_);
  if (settings() == newest) by_source_.ExtendTo(newest);
}

void ProgramCache::DropOutdated(const std::vector<std::shared_ptr<Program>>& programs) {
  // The look-up by source comes first, so it must not find again what the others still have.
  by_digest_.Supersede(programs);
  std::vector<std::shared_ptr<VariablePrograms>> variables;
  {
    absl::MutexLock lock(&mutex_);
    variables = by_source_.VariablesOf(programs);
  }
  for (const auto& each : variables) each->Forget();
  ProgramsBySource::Dropped dropped;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  dropped = by_source_.SetOutdated(programs);
  ++settings_changes_;
}

void ProgramCache::Reclaim(int64_t bytes, const std::string& user) {
  ProgramsBySource::Dropped dropped;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  dropped = by_source_.Reclaim(bytes, user);
}

}  // namespace kiln::runtime
