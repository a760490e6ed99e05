#include "server/runtime/cache/variable_programs.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "proto/check/check.h"
#include "server/log/log.h"

namespace kiln::runtime {
namespace {

// How far to look ahead of a variable that counts up: proofs made while the device computes delay
// no one.
constexpr int64_t kBindAhead = 16;

absl::StatusOr<variables::VariableGraph> MakeVariableGraph(const ProgramRequest& request,
                                                           const std::vector<Variable>& bounds) {
  const auto build = [&](absl::Span<const int64_t> values, ops::FormSizes* sizes) {
    Bindings bindings;
    for (size_t i = 0; i < values.size(); ++i) bindings[bounds[i].name] = values[i];
    return request.source->Build(bindings, request.payer.ForNextGraph(), sizes);
  };
  return variables::VariableGraph::Make(bounds, build);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundProgram>> VariableProgram::BindAt(
    const Bindings& bindings, const graph::Graph& graph) const {
  std::vector<int64_t> values;
  for (const Variable& variable : bounds_) values.push_back(bindings.at(variable.name));
  if (!graph_.IsRightAt(graph, values))
    return absl::NotFoundError("the graph has another form at these values");
  return Bind(program_, Signature::Of(graph), values);
}

std::vector<Bindings> VariableProgram::Following(const Bindings& bindings) const {
  if (bounds_.size() != 1) return {};
  KILN_CHECK_EQ(bindings.size(), 1);
  const auto& [name, asked] = *bindings.begin();
  const int64_t last = std::min(bounds_[0].max, asked + kBindAhead);
  std::vector<Bindings> following;
  for (int64_t value = asked + 1; value <= last; ++value) following.push_back({{name, value}});
  return following;
}

Bindings Preceding(const Bindings& bindings) {
  KILN_CHECK_EQ(bindings.size(), 1);
  const auto& [name, value] = *bindings.begin();
  return {{name, value - 1}};
}

void VariablePrograms::Get(const ProgramRequest& request, std::function<void(const Result&)> done) {
  const std::vector<Variable> bounds = WorkingBounds(request.source->variables(), request.bindings);
  std::vector<int64_t> ends;
  ends.reserve(bounds.size());
  for (const Variable& variable : bounds) ends.push_back(variable.max);
  std::shared_ptr<ProgramOrWhyNot> result;
  bool is_new = false;
  {
    absl::MutexLock lock(&mutex_);
    auto& known = by_ends_[ends];
    is_new = !known || (known->resolved() && LacksHostMemory(known->result().status()));
    if (is_new) known = std::make_shared<ProgramOrWhyNot>();
    result = known;
    KILN_VALIDATE(*this, by_ends_.size());
  }
  if (is_new) Make(request, bounds, result);
  const auto tell = [result, done = std::move(done)] { done(result->result()); };
  if (!result->AddWaiter(tell)) tell();
}

void VariablePrograms::Forget() {
  decltype(by_ends_) forgotten;  // outlives the lock: programs unload
  absl::MutexLock lock(&mutex_);
  forgotten.swap(by_ends_);
}

void VariablePrograms::Validate() const {
  for (const auto& [ends, program] : by_ends_) {
    KILN_CHECK_NE(program, nullptr);
    // They are parts of the same variables' bounds.
    KILN_CHECK_EQ(ends.size(), by_ends_.begin()->first.size());
  }
}

void VariablePrograms::Make(const ProgramRequest& request, const std::vector<Variable>& bounds,
                            const std::shared_ptr<ProgramOrWhyNot>& result) {
  auto graph = MakeVariableGraph(request, bounds);
  if (!graph.ok()) {
    log::Info("program_not_general",
              {{"name", request.name}, {"why", std::string(graph.status().message())}});
    return result->Resolve(graph.status());
  }
  const graph::Graph capacity = graph->capacity();
  const auto program = std::make_shared<ProgramFuture>();
  programs_->GetOrCompile(request, capacity, program,
                          [result, program, bounds, graph = *std::move(graph)](auto compiled) {
                            program->Resolve(compiled);
                            if (!compiled.ok()) return result->Resolve(compiled.status());
                            result->Resolve(std::make_shared<const VariableProgram>(
                                bounds, graph, (*compiled)->program));
                          });
}

}  // namespace kiln::runtime
