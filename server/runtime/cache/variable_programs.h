// Programs that serve all values of a graph's variables.
//
// Such a program is compiled once. Each new binding of the variables costs the proof that it is the
// graph's program at these values (variables/is_right_at.h).
#ifndef KILN_SERVER_RUNTIME_CACHE_VARIABLE_PROGRAMS_H_
#define KILN_SERVER_RUNTIME_CACHE_VARIABLE_PROGRAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/variable_graph.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/cache/programs_by_digest.h"
#include "server/runtime/future.h"
#include "server/runtime/program/bound_program.h"

namespace kiln::runtime {

// One program for all values within `bounds`. Immutable. Thread-safe.
class VariableProgram {
 public:
  VariableProgram(std::vector<Variable> bounds, variables::VariableGraph graph,
                  std::shared_ptr<Program> program)
      : bounds_(std::move(bounds)), graph_(std::move(graph)), program_(std::move(program)) {}

  // The ranges with which a graph is built that BindAt compares; a copy for one build.
  ops::FormSizes form_sizes() const { return graph_.form_sizes(); }

  // Returns the program at these values, for which `graph` was built. NOT_FOUND if it is not right
  // there. Other errors are those of Bind.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> BindAt(const Bindings& bindings,
                                                             const graph::Graph& graph) const;

  // Returns the bindings that follow if the only variable counts up, as the position in a growing
  // cache does, in order and up to a limit. Empty if there are more variables.
  std::vector<Bindings> Following(const Bindings& bindings) const;

 private:
  const std::vector<Variable> bounds_;
  const variables::VariableGraph graph_;
  const std::shared_ptr<Program> program_;
};

// Returns the binding before this one. Requires: there is only one variable. If that binding was
// asked for, the variable counts up.
Bindings Preceding(const Bindings& bindings);

// The programs of one source on one device, one for each part of its bounds (WorkingBounds).
// Thread-safe.
class VariablePrograms {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const VariableProgram>>;

  // `programs` outlives this.
  explicit VariablePrograms(ProgramsByDigest* programs) : programs_(programs) {}

  // Calls `done` with the program for the bounds around the request's bindings, or with the reason
  // why there is none. The first caller makes it, on this thread and at its own expense. `done` is
  // called as soon as the result is known, on the thread that determines it. Later callers get the
  // same result, except that a failure for lack of host memory is tried again.
  void Get(const ProgramRequest& request, std::function<void(const Result&)> done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The next Get makes its program anew.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ProgramOrWhyNot = Future<std::shared_ptr<const VariableProgram>>;

  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Make(const ProgramRequest& request, const std::vector<Variable>& bounds,
            const std::shared_ptr<ProgramOrWhyNot>& result);

  ProgramsByDigest* const programs_;
  absl::Mutex mutex_;
  // By the upper end of each variable's part.
  std::map<std::vector<int64_t>, std::shared_ptr<ProgramOrWhyNot>> by_ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_VARIABLE_PROGRAMS_H_
