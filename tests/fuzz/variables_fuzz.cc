// Random graphs with a variable: one graph at capacity gives the same results as the graphs made
// for each value, in the reference interpreter; and no bounds, however large, crash it.
#include <cmath>
#include <limits>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/graph/wire/wire.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/variables/variable_graph.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/run.h"
#include "tests/numerics/compiled/packed.h"

namespace kiln::fuzz {
namespace {

using numerics::Packed;
using ops::HostTensor;

constexpr int kNodes = 8;
constexpr int64_t kValueMax = 5;

graph::Limits SmallLimits() {
  graph::Limits limits;
  limits.elements_max = 1 << 10;
  return limits;
}

HostTensor RandomValue(Random& random, const graph::Input& input) {
  std::vector<double> values(ir::NumElements(input.shape));
  for (double& value : values) value = std::uniform_real_distribution<double>(-2, 4)(random);
  return HostTensor::Of(input.dtype, input.shape, values);
}

// Sums of halves may be added in another order if a value had another layout.
bool Near(const HostTensor& value, const HostTensor& packed) {
  for (int64_t i = 0; i < value.size(); ++i) {
    const double a = value.Number(i);
    const double b = packed.Number(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= 1e-5 * (1 + std::abs(a)))) return false;
  }
  return true;
}

std::optional<std::string> Compare(Random& random, const graph::Graph& special,
                                   const graph::Graph& capacity, int64_t n) {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> packed;
  for (size_t i = 0; i < special.inputs.size(); ++i) {
    inputs.push_back(RandomValue(random, special.inputs[i]));
    packed.push_back(Packed(inputs.back(), capacity.inputs[i]));
  }
  packed.push_back(HostTensor::Of(ir::DType::kInt64, {1}, {static_cast<double>(n)}));
  const auto expected = ops::Evaluate(graph::Roots(special), inputs);
  const auto actual = ops::Evaluate(graph::Roots(capacity), packed);
  if (!expected.ok()) return std::nullopt;
  if (!actual.ok()) return StrCat("not evaluated: ", actual.status().ToString());
  for (size_t i = 0; i < expected->size(); ++i) {
    if (Near((*expected)[i], (*actual)[i])) continue;
    return StrCat("root ", i, " differs at n = ", n, "\n", graph::Print(special), "at capacity\n",
                  graph::Print(capacity));
  }
  return std::nullopt;
}

Outcome TryOne(Random& random) {
  v1::Graph proto = RandomGraph(random, kNodes);
  if (proto.variables_size() == 0) return {"no variable", std::nullopt};
  v1::Variable& variable = *proto.mutable_variables(0);
  variable.set_max(OneIn(random, 16) ? int64_t{1} << Below(random, 63) : kValueMax);
  const auto variables = graph::Variables(proto);
  if (!variables.ok()) return {"rejected", std::nullopt};
  const auto build = [&](absl::Span<const int64_t> values, ops::FormSizes* sizes) {
    return graph::FromProto(proto, {{variable.name(), values[0]}}, SmallLimits(), sizes);
  };
  const auto one = variables::VariableGraph::Make(*variables, build);
  if (!one.ok() || variable.max() != kValueMax) return {"no one graph", std::nullopt};
  int covered = 0;
  for (int64_t n = 1; n <= kValueMax; ++n) {
    ops::FormSizes sizes = one->form_sizes();
    const auto sized = build({n}, &sizes);
    if (!sized.ok() || !one->IsRightAt(*sized, {n})) continue;
    const auto special = build({n}, nullptr);
    const auto differentiated = autodiff::Differentiate(*special);
    if (!differentiated.ok()) continue;
    ++covered;
    if (auto defect = Compare(random, *differentiated, one->capacity(), n)) {
      return {"", std::move(defect)};
    }
  }
  return {covered > 0 ? "accepted" : "not covered", std::nullopt};
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.02, kiln::fuzz::TryOne); }
