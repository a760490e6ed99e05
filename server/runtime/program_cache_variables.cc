// The part of the program cache that knows variables: one program for all their values.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"
#include "server/runtime/program_cache.h"

namespace kiln::runtime {
namespace {

// The bindings' values in the order of the variables.
std::vector<int64_t> InOrder(const std::vector<Variable>& variables, const Bindings& bindings) {
  std::vector<int64_t> values;
  for (const Variable& variable : variables) values.push_back(bindings.at(variable.name));
  return values;
}

absl::StatusOr<variables::OneGraph> MakeOneGraph(const GraphSource& source) {
  return variables::OneGraph::Make(source.variables(), [&](absl::Span<const int64_t> values) {
    Bindings bindings;
    for (size_t i = 0; i < values.size(); ++i) bindings[source.variables()[i].name] = values[i];
    return source.Build(bindings);
  });
}

}  // namespace

std::shared_ptr<ProgramCache::GeneralFuture> ProgramCache::GeneralOf(const Request& request) {
  std::shared_ptr<GeneralFuture> general;
  {
    absl::MutexLock lock(&mutex_);
    auto& known = generals_[{request.device->name(), request.source->key()}];
    if (known) return known;
    general = known = std::make_shared<GeneralFuture>();
  }
  MakeGeneral(request, general);
  return general;
}

void ProgramCache::MakeGeneral(const Request& request,
                               const std::shared_ptr<GeneralFuture>& general) {
  auto graph = MakeOneGraph(*request.source);
  if (!graph.ok()) {
    log::Info("program_not_general",
              {{"name", request.name}, {"why", std::string(graph.status().message())}});
    return general->Resolve(graph.status());
  }
  const graph::Graph capacity = graph->capacity();
  const auto program = std::make_shared<ProgramFuture>();
  CompileOnce(
      request, capacity, program, [general, program, graph = *std::move(graph)](auto bound) {
        program->Resolve(bound);
        if (!bound.ok()) return general->Resolve(bound.status());
        general->Resolve(std::make_shared<const General>(General{graph, (*bound)->program}));
      });
}

void ProgramCache::BindGeneral(const Request& request, const GeneralFuture& general) {
  const Bindings& bindings = std::get<Bindings>(request.key);
  const auto graph = request.source->Build(bindings);
  if (!graph.ok()) return Finish(request, graph.status());
  const std::vector<int64_t> values = InOrder(request.source->variables(), bindings);
  const bool covered = general.result().ok() && (*general.result())->graph.Covers(*graph, values);
  options_.metrics->ProgramBound(covered);
  if (!covered) return CompileAlone(request, *graph);
  Finish(request, Bind((*general.result())->program, Signature::Of(*graph), values));
}

}  // namespace kiln::runtime
