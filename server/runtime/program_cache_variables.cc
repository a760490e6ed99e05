// The part of the program cache that knows variables: one program for all their values.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/program_cache.h"

namespace kiln::runtime {
namespace {

// How far to look ahead of a variable that counts up: what is proved while the device computes
// costs nobody time.
constexpr int64_t kBindAhead = 16;

// The bindings' values in the order of the variables.
std::vector<int64_t> InOrder(const std::vector<Variable>& variables, const Bindings& bindings) {
  std::vector<int64_t> values;
  for (const Variable& variable : variables) values.push_back(bindings.at(variable.name));
  return values;
}

absl::StatusOr<variables::VariableGraph> MakeOneGraph(const GraphSource& source,
                                                      const std::vector<Variable>& bounds,
                                                      const std::function<Grow()>& next_graph) {
  return variables::VariableGraph::Make(bounds, [&](absl::Span<const int64_t> values) {
    Bindings bindings;
    for (size_t i = 0; i < values.size(); ++i) bindings[source.variables()[i].name] = values[i];
    return source.Build(bindings, next_graph());
  });
}

}  // namespace

std::vector<Variable> ProgramCache::BoundsOf(const Request& request) {
  return WorkingBounds(request.source->variables(), std::get<Bindings>(request.key));
}

std::shared_ptr<ProgramCache::GeneralFuture> ProgramCache::GeneralOf(const Request& request) {
  GeneralKey key(request.device->name(), request.source->key(), {});
  for (const Variable& variable : BoundsOf(request)) std::get<2>(key).push_back(variable.max);
  std::shared_ptr<GeneralFuture> general;
  {
    absl::MutexLock lock(&mutex_);
    auto& known = generals_[key];
    if (known) return known;
    general = known = std::make_shared<GeneralFuture>();
  }
  // Not kept: what found no memory may find some the next time.
  general->AddWaiter([this, key, future = general.get()] {
    if (errors::Reason(future->result().status()) != "HOST_MEMORY") return;
    absl::MutexLock lock(&mutex_);
    const auto known = generals_.find(key);
    if (known != generals_.end() && known->second.get() == future) generals_.erase(known);
  });
  MakeGeneral(request, general);
  return general;
}

void ProgramCache::MakeGeneral(const Request& request,
                               const std::shared_ptr<GeneralFuture>& general) {
  const std::vector<Variable> bounds = BoundsOf(request);
  auto graph = MakeOneGraph(*request.source, bounds, [&] { return ChargeFor(request); });
  if (!graph.ok()) {
    log::Info("program_not_general",
              {{"name", request.name}, {"why", std::string(graph.status().message())}});
    return general->Resolve(graph.status());
  }
  const graph::Graph capacity = graph->capacity();
  const auto program = std::make_shared<ProgramFuture>();
  CompileOnce(request, capacity, program,
              [general, program, bounds, graph = *std::move(graph)](auto bound) {
                program->Resolve(bound);
                if (!bound.ok()) return general->Resolve(bound.status());
                general->Resolve(
                    std::make_shared<const General>(General{bounds, graph, (*bound)->program}));
              });
}

void ProgramCache::BindGeneral(const Request& request, const GeneralFuture& general) {
  const auto graph = request.source->Build(std::get<Bindings>(request.key), ChargeFor(request));
  if (!graph.ok()) return Finish(request, graph.status());
  const absl::StatusOr<std::shared_ptr<const BoundProgram>> bound =
      general.result().ok() ? BindIfCovered(request, *graph, **general.result())
                            : absl::NotFoundError("no program for all values");
  options_.metrics->ProgramBound(bound.ok());
  if (!bound.ok()) return CompileAlone(request, *graph);
  MarkShared(request.key);
  Finish(request, bound);
  BindAhead(request, **general.result());
}

absl::StatusOr<std::shared_ptr<const BoundProgram>> ProgramCache::BindIfCovered(
    const Request& request, const graph::Graph& graph, const General& general) {
  const std::vector<int64_t> values =
      InOrder(request.source->variables(), std::get<Bindings>(request.key));
  if (!general.graph.IsRightAt(graph, values)) {
    return absl::NotFoundError("another form at these values");
  }
  return Bind(general.program, Signature::Of(graph), values);
}

void ProgramCache::MarkShared(const Key& key) {
  absl::MutexLock lock(&mutex_);
  const auto entry = by_source_.find(key);
  if (entry == by_source_.end() || entry->second.shared) return;
  entry->second.shared = true;
  ++shared_;
}

void ProgramCache::BindAhead(const Request& request, const General& general) {
  if (general.bounds.size() != 1) return;
  const int64_t most = general.bounds[0].max;
  Request next = request;
  int64_t& value = std::get<Bindings>(next.key).begin()->second;
  const int64_t asked = value;
  {
    absl::MutexLock lock(&mutex_);
    --value;
    if (!by_source_.contains(next.key)) return;
  }
  for (value = asked + 1; value <= std::min(most, asked + kBindAhead); ++value) {
    {
      absl::MutexLock lock(&mutex_);
      if (by_source_.contains(next.key)) continue;
    }
    const auto graph = request.source->Build(std::get<Bindings>(next.key), {});
    if (stopped_ || !graph.ok()) return;
    auto bound = BindIfCovered(next, *graph, general);
    if (!bound.ok()) return;
    Entry entry;
    entry.future = std::make_shared<ProgramFuture>();
    entry.future->Resolve(*std::move(bound));
    entry.shared = true;
    absl::MutexLock lock(&mutex_);
    entry.used = ++uses_;
    if (!by_source_.try_emplace(next.key, std::move(entry)).second) continue;
    ++shared_;
    options_.metrics->ProgramBound(true);
  }
}

}  // namespace kiln::runtime
