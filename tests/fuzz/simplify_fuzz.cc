// Random graphs give the same results before and after simplification, bit for bit, in the
// reference interpreter.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/verify.h"
#include "compiler/graph/wire/wire.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/testing/evaluate.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

constexpr int kNodes = 16;

double AnyNumber(Random& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array<double, 12> kSpecial = {0.0, -0.0, 1.0,  -1.0,      0.5,        2.0,
                                               3.0, 10.0, 1e30, kInfinity, -kInfinity, NAN};
  if (OneIn(random, 2)) return kSpecial[Below(random, kSpecial.size())];
  return std::uniform_real_distribution<double>(-4, 4)(random);
}

std::vector<ops::HostTensor> RandomInputs(Random& random, const graph::Graph& graph) {
  std::vector<ops::HostTensor> inputs;
  for (const graph::Input& input : graph.inputs) {
    std::vector<double> values(ir::NumElements(input.shape));
    for (double& value : values) value = AnyNumber(random);
    inputs.push_back(ops::HostTensor::Of(input.dtype, input.shape, values));
  }
  return inputs;
}

// Equal bits, or both NaN.
bool Same(const ops::HostTensor& a, const ops::HostTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.bytes == b.bytes) return true;
  if (!ir::IsFloat(a.dtype)) return false;
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.Float(i), y = b.Float(i);
    bool both_nan = std::isnan(x) && std::isnan(y);
    if (!both_nan && std::memcmp(&x, &y, sizeof(x)) != 0) return false;
  }
  return true;
}

// Rules that may round differently: they add in another order, or multiply twice where pow rounds
// once.
bool MayRoundOtherwise(const ir::RewriteReport& report) {
  constexpr std::array<const char*, 3> kRules = {"reduce_of_reduce", "sum_of_expand",
                                                 "small_power"};
  return std::any_of(kRules.begin(), kRules.end(),
                     [&](const char* rule) { return report.applied.contains(rule); });
}

// The sign and payload of a computed NaN are unspecified, so the bits of a NaN may be anything.
bool LooksAtBitsOfNan(absl::Span<const ir::Node* const> roots,
                      absl::Span<const ops::HostTensor> inputs) {
  std::vector<const ir::Node*> looked_at;
  for (const ir::Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() == ir::Op::kBitcast && ir::IsFloat(node->operand(0)->dtype())) {
      looked_at.push_back(node->operand(0));
    }
  }
  absl::StatusOr<std::vector<ops::HostTensor>> values = ops::Evaluate(looked_at, inputs);
  if (!values.ok()) return false;
  return std::any_of(values->begin(), values->end(), [](const ops::HostTensor& tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (std::isnan(tensor.Float(i))) return true;
    }
    return false;
  });
}

Outcome Compare(Random& random, const graph::Graph& graph) {
  std::vector<const ir::Node*> before = graph::Roots(graph);
  ir::Rewriter rewriter(*graph.context, graph::SimplifyRules());
  std::vector<const ir::Node*> after;
  for (const ir::Node* root : before) after.push_back(rewriter.Rewrite(root));
  if (rewriter.report().cyclic) return {"cyclic", "rules that undo each other"};
  if (MayRoundOtherwise(rewriter.report())) return {"rounds otherwise", std::nullopt};
  std::vector<ops::HostTensor> inputs = RandomInputs(random, graph);
  absl::StatusOr<std::vector<ops::HostTensor>> a = ops::Evaluate(before, inputs);
  absl::StatusOr<std::vector<ops::HostTensor>> b = ops::Evaluate(after, inputs);
  if (!a.ok() || !b.ok()) {
    return {"", StrCat("not evaluated: ", a.status().ToString(), b.status().ToString())};
  }
  for (size_t i = 0; i < a->size(); ++i) {
    if (Same((*a)[i], (*b)[i])) continue;
    if (LooksAtBitsOfNan(before, inputs)) return {"bits of NaN", std::nullopt};
    return {"", StrCat("root ", i, " differs\n", graph::Print(graph), "simplified\n",
                       graph::Print(graph::WithRoots(graph, after)))};
  }
  return {rewriter.report().applied.empty() ? "nothing to do" : "accepted", std::nullopt};
}

Outcome TryOne(Random& random) {
  v1::Graph proto = RandomGraph(random, kNodes);
  graph::Bindings bindings;
  if (proto.variables_size() > 0) bindings["n"] = 1;
  graph::Limits limits;
  limits.elements_max = 1 << 12;
  absl::StatusOr<graph::Graph> graph = graph::FromProto(proto, bindings, limits);
  if (!graph.ok()) return {"rejected", std::nullopt};
  for (const v1::Node& node : proto.nodes()) {
    if (node.op() == "gradient") return {"has a gradient", std::nullopt};
  }
  return Compare(random, *graph);
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.2, kiln::fuzz::TryOne); }
