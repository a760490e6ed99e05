#include "compiler/variables/generalize.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/variables/probes.h"

namespace kiln::variables {
namespace {

using ir::Node;
// The corresponding nodes at all probes.
using Tuple = std::vector<const Node*>;

absl::Status HasOtherForms(const Node* node) {
  return absl::UnimplementedError(
      StrCat("the graph has an op \"", ir::Name(node->op()),
             "\" at some values of the variables, and another at others"));
}

// More probes may help.
absl::Status HasNoFormula(const Node* node, std::string_view what) {
  return absl::OutOfRangeError(
      StrCat("an op \"", ir::Name(node->op()), "\" has ", what,
             ", which depends on the variables in a way that no formula describes"));
}

// Walks all graphs in parallel.
class GraphGeneralizer {
 public:
  GraphGeneralizer(const Probes& probes, std::vector<graph::Variable> variables,
                   std::vector<graph::Graph> graphs)
      : probes_(probes), graphs_(std::move(graphs)) {
    result_.variables = std::move(variables);
    result_.float32_matmul_precision = graphs_[0].float32_matmul_precision;
  }

  absl::StatusOr<GeneralGraph> Run() {
    if (absl::Status status = ReadInputs(); !status.ok()) return status;
    std::vector<std::vector<const Node*>> roots;
    for (const graph::Graph& graph : graphs_) roots.push_back(graph::Roots(graph));
    const size_t outputs = graphs_[0].outputs.size();
    for (size_t i = 0; i < roots[0].size(); ++i) {
      Tuple tuple;
      for (const auto& at_probe : roots) {
        if (at_probe.size() != roots[0].size()) return absl::InternalError("results differ");
        tuple.push_back(at_probe[i]);
      }
      const absl::StatusOr<int> node = Visit(std::move(tuple));
      if (!node.ok()) return node.status();
      if (i < outputs) {
        result_.outputs.push_back(*node);
      } else {
        result_.updates.push_back({graphs_[0].updates[i - outputs].input, *node});
      }
    }
    return std::move(result_);
  }

 private:
  absl::Status ReadInputs() {
    for (size_t i = 0; i < graphs_[0].inputs.size(); ++i) {
      std::vector<ir::Shape> shapes;
      for (const graph::Graph& graph : graphs_) shapes.push_back(graph.inputs[i].shape);
      std::optional<std::vector<Affine>> shape = FitAll(shapes);
      if (!shape.has_value()) {
        return absl::OutOfRangeError(
            StrCat("the shape of input ", i,
                   " depends on the variables in a way that no formula describes"));
      }
      result_.inputs.push_back({graphs_[0].inputs[i].dtype, *std::move(shape)});
    }
    return absl::OkStatus();
  }

  // Visits operands first, without recursion, since graphs are deep.
  absl::StatusOr<int> Visit(Tuple root) {
    std::vector<Tuple> pending = {root};
    while (!pending.empty()) {
      const Tuple tuple = pending.back();
      if (known_.contains(tuple)) {
        pending.pop_back();
        continue;
      }
      if (absl::Status status = CheckAlike(tuple); !status.ok()) return status;
      const size_t before = pending.size();
      for (size_t i = 0; i < tuple[0]->operands().size(); ++i) {
        Tuple operand = OperandOf(tuple, i);
        if (!known_.contains(operand)) pending.push_back(std::move(operand));
      }
      // The tuple is visited again once its operands are known.
      if (pending.size() > before) continue;
      if (absl::Status status = Add(tuple); !status.ok()) return status;
      pending.pop_back();
    }
    return known_.at(root);
  }

  static Tuple OperandOf(const Tuple& tuple, size_t i) {
    Tuple operand;
    for (const Node* node : tuple) operand.push_back(node->operand(static_cast<int>(i)));
    return operand;
  }

  static absl::Status CheckAlike(const Tuple& tuple) {
    const Node* first = tuple[0];
    for (const Node* node : tuple) {
      // Attributes must be of one kind; their numbers may differ.
      const bool alike = node->op() == first->op() && node->dtype() == first->dtype() &&
                         node->operands().size() == first->operands().size() &&
                         node->attribute().index() == first->attribute().index();
      if (!alike) return HasOtherForms(first);
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Tuple& tuple) {
    const Node* first = tuple[0];
    GeneralNode node{first->op(), first->dtype(), {}, {}, first->attribute(), {}};
    for (size_t i = 0; i < first->operands().size(); ++i) {
      node.operands.push_back(known_.at(OperandOf(tuple, i)));
    }
    std::vector<ir::Shape> shapes;
    for (const Node* at_probe : tuple) shapes.push_back(at_probe->shape());
    std::optional<std::vector<Affine>> shape = FitAll(shapes);
    if (!shape.has_value()) return HasNoFormula(first, "a shape");
    node.shape = *std::move(shape);
    if (absl::Status status = FitAttribute(tuple, &node); !status.ok()) return status;
    known_[tuple] = static_cast<int>(result_.nodes.size());
    result_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status FitAttribute(const Tuple& tuple, GeneralNode* node) {
    // Most attributes do not depend on the variables and need no formula.
    const bool same = std::all_of(tuple.begin(), tuple.end(), [&](const Node* at_probe) {
      return at_probe->attribute() == node->attribute;
    });
    if (same) return absl::OkStatus();
    if (std::holds_alternative<ir::ConstValue>(node->attribute)) {
      std::vector<ir::ConstValue> values;
      for (const Node* at_probe : tuple) values.push_back(at_probe->attr<ir::ConstValue>());
      std::optional<Formula> formula = probes_.FitConstant(node->dtype, values, &result_.derived);
      if (!formula.has_value()) return HasNoFormula(tuple[0], "a value");
      node->varying = *std::move(formula);
      return absl::OkStatus();
    }
    if (std::holds_alternative<ir::IntsAttr>(node->attribute)) {
      std::vector<std::vector<int64_t>> lists;
      for (const Node* at_probe : tuple) lists.push_back(at_probe->attr<ir::IntsAttr>().values);
      std::optional<std::vector<Affine>> ints = FitAll(lists);
      if (!ints.has_value()) return HasNoFormula(tuple[0], "numbers");
      node->varying = *std::move(ints);
      return absl::OkStatus();
    }
    return HasOtherForms(tuple[0]);
  }

  // Fits each element of the lists.
  std::optional<std::vector<Affine>> FitAll(const std::vector<std::vector<int64_t>>& lists) {
    std::vector<Affine> fitted;
    for (size_t i = 0; i < lists[0].size(); ++i) {
      std::vector<int64_t> seen;
      for (const std::vector<int64_t>& list : lists) {
        if (list.size() != lists[0].size()) return std::nullopt;
        seen.push_back(list[i]);
      }
      std::optional<Affine> affine = probes_.Fit(seen, &result_.derived);
      if (!affine.has_value()) return std::nullopt;
      fitted.push_back(*std::move(affine));
    }
    return fitted;
  }

  const Probes& probes_;
  const std::vector<graph::Graph> graphs_;
  // Keyed by the whole tuple: values that are one node at some probe may be two at another.
  absl::flat_hash_map<Tuple, int> known_;
  GeneralGraph result_;
};

absl::StatusOr<GeneralGraph> GeneralizeAt(const Probes& probes,
                                          const std::vector<graph::Variable>& variables,
                                          const BuildFunction& build) {
  std::vector<graph::Graph> graphs;
  for (const std::vector<int64_t>& point : probes.points()) {
    absl::StatusOr<graph::Graph> graph = build(point);
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
  }
  return GraphGeneralizer(probes, variables, std::move(graphs)).Run();
}

}  // namespace

absl::StatusOr<GeneralGraph> Generalize(std::vector<graph::Variable> variables,
                                        const BuildFunction& build) {
  absl::Status first = absl::UnimplementedError(
      "a variable has only two values, which two programs serve as well, or there are too many or "
      "too large variables");
  // The best probes come first, and so does the most useful reason.
  bool tried = false;
  bool lacks_formula = false;
  std::vector<Probes> later;
  const auto try_at = [&](const Probes& probes) {
    absl::StatusOr<GeneralGraph> graph = GeneralizeAt(probes, variables, build);
    if (!tried) first = graph.status();
    tried = true;
    lacks_formula = lacks_formula || absl::IsOutOfRange(graph.status());
    return graph;
  };
  for (const Probes& probes : ProbesFor(variables)) {
    // Many probes only help to find more formulas.
    if (probes.derives() && !lacks_formula) {
      later.push_back(probes);
      continue;
    }
    if (auto graph = try_at(probes); graph.ok()) return graph;
  }
  for (const Probes& probes : later) {
    if (!lacks_formula) break;
    if (auto graph = try_at(probes); graph.ok()) return graph;
  }
  return absl::IsOutOfRange(first) ? absl::UnimplementedError(first.message()) : first;
}

}  // namespace kiln::variables
