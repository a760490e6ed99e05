#include "tests/random_graphs/slope.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/testing/evaluate.h"

namespace kiln::random_graphs {
namespace {

using ir::Node;
using ir::Op;
using ops::HostTensor;

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-4;
// Between one-sided quotients, which differ by kStep times the second derivative.
constexpr double kKink = 1e-2;

bool Near(double a, double b) {
  return std::abs(a - b) <= kTolerance * (1 + std::max(std::abs(a), std::abs(b)));
}

// The gradients of these ops differ from their slopes by definition. cholesky's belongs to a
// symmetric input, and a random one is not symmetric.
bool HasOtherGradient(const std::string& op) {
  return op == "with_derivative" || op == "nextafter" || op == "bitcast" || op == "cholesky";
}

// Returns the inputs whose gradients are requested, in their order; empty if some are missing, or
// if an op defines another gradient.
std::vector<const Node*> Variables(const numerics::RandomGraph& random) {
  const graph::Graph& graph = random.graph;
  if (std::any_of(random.ops.begin(), random.ops.end(), HasOtherGradient)) return {};
  const std::vector<const Node*> nodes = ir::TopologicalOrder(graph.outputs);
  std::vector<const Node*> variables;
  for (size_t i = 1; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i]->op() != Op::kGradient) return {};
    variables.push_back(graph.outputs[i]->operand(1));
  }
  size_t wanted = 0;
  for (const Node* node : nodes) {
    wanted += node->op() == Op::kInput && ir::IsFloat(node->dtype());
  }
  return wanted == variables.size() ? variables : std::vector<const Node*>{};
}

class Line {
 public:
  Line(const numerics::RandomGraph& random, const std::vector<const Node*>& variables,
       uint64_t seed)
      : random_(random) {
    std::mt19937_64 draws(seed);
    for (const Node* variable : variables) {
      HostTensor along = HostTensor::Zeros(variable->dtype(), variable->shape());
      for (int64_t i = 0; i < along.size(); ++i) {
        along.SetFloat(i, static_cast<double>(draws() >> 11) * 0x1p-52 - 1);
      }
      indices_.push_back(variable->attr<ir::InputAttr>().index);
      directions_.push_back(std::move(along));
    }
  }

  double ValueAt(double step) const {
    std::vector<HostTensor> inputs = random_.inputs;
    for (size_t v = 0; v < indices_.size(); ++v) {
      HostTensor& input = inputs[indices_[v]];
      for (int64_t i = 0; i < input.size(); ++i) {
        input.SetFloat(i, input.Float(i) + step * directions_[v].Float(i));
      }
    }
    const auto value = ops::Evaluate({random_.graph.outputs[0]}, inputs);
    return value.ok() ? (*value)[0].Float(0) : std::nan("");
  }

  double Quotient(double step) const { return (ValueAt(step) - ValueAt(-step)) / (2 * step); }

  // Whether there is no slope: values on both sides have different ones, as those of a maximum
  // whose operands are equal but for rounding. Both quotients of a step would be their mean.
  bool HasKink() const {
    const double value = ValueAt(0);
    const double ahead = (ValueAt(kStep) - value) / kStep;
    const double back = (value - ValueAt(-kStep)) / kStep;
    return std::abs(ahead - back) > kKink * (1 + std::max(std::abs(ahead), std::abs(back)));
  }

  double Slope(const std::vector<HostTensor>& gradients) const {
    double slope = 0;
    for (size_t v = 0; v < directions_.size(); ++v) {
      for (int64_t i = 0; i < directions_[v].size(); ++i) {
        slope += gradients[v + 1].Float(i) * directions_[v].Float(i);
      }
    }
    return slope;
  }

 private:
  const numerics::RandomGraph& random_;
  std::vector<int64_t> indices_;
  std::vector<HostTensor> directions_;
};

}  // namespace

std::optional<std::string> SlopeDisagreement(const numerics::RandomGraph& random, uint64_t seed) {
  const std::vector<const Node*> variables = Variables(random);
  if (variables.empty()) return std::nullopt;
  const auto differentiated = autodiff::Differentiate(random.graph);
  if (!differentiated.ok()) return differentiated.status().ToString();
  const auto gradients = ops::Evaluate(differentiated->outputs, random.inputs);
  if (!gradients.ok()) return gradients.status().ToString();
  const Line line(random, variables, seed);
  const double wide = line.Quotient(4 * kStep);
  const double middle = line.Quotient(2 * kStep);
  const double narrow = line.Quotient(kStep);
  if (!std::isfinite(narrow) || !Near(wide, narrow) || !Near(middle, narrow)) return std::nullopt;
  const double slope = line.Slope(*gradients);
  if (Near(slope, narrow)) return "";
  if (line.HasKink()) return std::nullopt;
  return StrCat("the gradients' slope is ", slope, ", the difference quotient ", narrow);
}

}  // namespace kiln::random_graphs
