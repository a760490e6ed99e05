#include "compiler/graph/wire/variables.h"

#include "absl/container/flat_hash_set.h"
#include "compiler/graph/error.h"
#include "compiler/ir/quoted.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {
namespace {

absl::Status VariableError(const std::string& name, std::string_view message) {
  return MakeError("VARIABLE", {{"variable", Shown(name)}},
                   StrCat("variable ", Quoted(name), ": ", message));
}

}  // namespace

absl::StatusOr<std::vector<Variable>> Variables(const v1::Graph& proto) {
  std::vector<Variable> variables;
  absl::flat_hash_set<std::string> names;
  for (const v1::Variable& variable : proto.variables()) {
    if (variable.name().empty()) return VariableError("", "it has no name");
    if (variable.min() < 1 || variable.min() > variable.max()) {
      return VariableError(variable.name(), StrCat("its bounds are ", variable.min(), " to ",
                                                   variable.max(), "; 1 <= min <= max must hold"));
    }
    if (!names.insert(variable.name()).second) {
      return VariableError(variable.name(), "it is declared twice");
    }
    variables.push_back({variable.name(), variable.min(), variable.max()});
  }
  return variables;
}

absl::Status CheckBindings(const std::vector<Variable>& variables, const Bindings& bindings) {
  absl::flat_hash_set<std::string> names;
  for (const Variable& variable : variables) {
    names.insert(variable.name);
    auto bound = bindings.find(variable.name);
    if (bound == bindings.end()) {
      return VariableError(variable.name, "the run binds no value to it");
    }
    if (bound->second < variable.min || bound->second > variable.max) {
      return VariableError(variable.name,
                           StrCat("it is bound to ", bound->second, ", outside of its bounds ",
                                  variable.min, " to ", variable.max));
    }
  }
  for (const auto& [name, value] : bindings) {
    if (!names.contains(name)) {
      return VariableError(name, StrCat("it is bound to ", value, ", but the graph declares none"));
    }
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<int64_t> ValueOf(const std::string& variable, const Bindings& bindings) {
  auto bound = bindings.find(variable);
  if (bound != bindings.end()) return bound->second;
  return VariableError(variable, "a dimension uses it, but the graph declares none");
}

absl::StatusOr<int64_t> ResolveSum(const v1::Sum& sum, const Bindings& bindings) {
  int64_t total = sum.constant();
  for (const v1::Sum::Term& term : sum.terms()) {
    absl::StatusOr<int64_t> value = ValueOf(term.variable(), bindings);
    if (!value.ok()) return value;
    // Factors come from clients, and bindings within their bounds may also be large.
    int64_t product = 0;
    if (__builtin_mul_overflow(*value, term.factor(), &product) ||
        __builtin_add_overflow(total, product, &total)) {
      return VariableError(term.variable(),
                           StrCat(term.factor(), " times it does not fit into 64 bits"));
    }
  }
  return total;
}

}  // namespace

absl::StatusOr<int64_t> ResolveDim(const v1::Dim& dim, const Bindings& bindings) {
  switch (dim.kind_case()) {
    case v1::Dim::kSize:
      return dim.size();
    case v1::Dim::kVariable:
      return ValueOf(dim.variable(), bindings);
    case v1::Dim::kSum:
      return ResolveSum(dim.sum(), bindings);
    case v1::Dim::KIND_NOT_SET:
      break;
  }
  return MakeError("ATTRIBUTE", {}, "it has neither a size nor a variable");
}

absl::StatusOr<ir::Shape> ResolveShape(const v1::Shape& shape, const Bindings& bindings) {
  ir::Shape sizes;
  for (const v1::Dim& dim : shape.dims()) {
    absl::StatusOr<int64_t> size = ResolveDim(dim, bindings);
    if (!size.ok()) {
      // An error about a variable names it; other errors get the dimension's position here.
      if (dim.kind_case() != v1::Dim::KIND_NOT_SET) return size.status();
      return MakeError("ATTRIBUTE", {},
                       StrCat("dimension ", sizes.size(), " has neither a size nor a variable"));
    }
    sizes.push_back(*size);
  }
  return sizes;
}

}  // namespace kiln::graph
