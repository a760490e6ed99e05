#include "server/runtime/cache/graph_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "server/errors/errors.h"

namespace kiln::runtime {
namespace {
absl::Status BadBinding(const std::string& variable, const std::string& what) {
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("variable ", Quoted(variable), " ", what)),
      "BAD_BINDING", {{"variable", variable}});
}
}  // namespace

absl::Status CheckBindings(const std::vector<Variable>& variables, const Bindings& bindings) {
  for (const Variable& variable : variables) {
    const auto bound = bindings.find(variable.name);
    if (bound == bindings.end()) return BadBinding(variable.name, "is not bound by this run");
    if (bound->second < variable.min || bound->second > variable.max) {
      return BadBinding(variable.name,
                        absl::StrCat("is bound to ", bound->second, ", which is not in [",
                                     variable.min, ", ", variable.max, "]"));
    }
  }
  // All variables are bound at this point, so with equal counts there is no unknown name.
  if (bindings.size() == variables.size()) return absl::OkStatus();
  for (const auto& [name, value] : bindings) {
    bool known = false;
    for (const Variable& variable : variables) known = known || variable.name == name;
    if (!known) return BadBinding(name, "is bound, but the graph has no such variable");
  }
  return absl::OkStatus();
}

std::vector<Variable> WorkingBounds(const std::vector<Variable>& variables,
                                    const Bindings& bindings) {
  constexpr int64_t kWide = 1024;
  constexpr int64_t kPartFactor = 8;
  std::vector<Variable> bounds = variables;
  for (Variable& variable : bounds) {
    const int64_t value = bindings.at(variable.name);
    // Selects the smallest of max, max / 8, max / 64, … and kWide that is not less than the value.
    for (int64_t end = variable.max; variable.max > kWide && value <= end;) {
      variable.max = end;
      end = std::max(kWide, end / kPartFactor);
      if (end == variable.max) break;
    }
  }
  return bounds;
}

Bindings SmallestBindings(const std::vector<Variable>& variables) {
  Bindings bindings;
  for (const Variable& variable : variables) bindings[variable.name] = variable.min;
  return bindings;
}

}  // namespace kiln::runtime
