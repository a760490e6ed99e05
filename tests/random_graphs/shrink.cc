#include "tests/random_graphs/shrink.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler/graph/splat.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/testing/substitute.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"

namespace kiln::random_graphs {
namespace {

using ir::Node;
using ir::Op;
using ops::HostTensor;

bool IsLeaf(const Node* node) { return node->op() == Op::kInput || node->op() == Op::kConst; }

bool HasTypeOf(const Node* a, const Node* b) {
  return a->dtype() == b->dtype() && a->shape() == b->shape();
}

// The weight of a subject's parts, the heaviest first. Each change lowers the first of these that
// it affects, so that no two changes undo each other and shrinking terminates.
using Weight = std::array<size_t, 5>;

Weight WeightOf(const Subject& subject) {
  size_t computed = 0;
  size_t spread = 0;   // nodes that only broadcast a constant
  size_t numbers = 0;  // constants that are not zero
  for (const Node* node : ir::TopologicalOrder(subject.graph.outputs)) {
    if (node->op() == Op::kConst) {
      numbers += !graph::IsSplat(node, 0);
    } else if (graph::SplatConst(node) != nullptr) {
      ++spread;
    } else if (node->op() != Op::kInput) {
      ++computed;
    }
  }
  return {subject.graph.outputs.size(), computed, spread, numbers, subject.inputs.size()};
}

// The value of an input; one without bytes if there is none.
HostTensor ValueOf(const Subject& subject, const Node* input) {
  const int64_t index = input->attr<ir::InputAttr>().index;
  const auto count = static_cast<int64_t>(subject.inputs.size());
  if (index >= 0 && index < count) return subject.inputs[index];
  return {input->dtype(), input->shape(), {}};
}

// The number of elements for which there are bytes, which may be fewer than the shape says.
int64_t CountElements(const HostTensor& value) {
  const int size = ir::SizeOf(value.dtype);
  if (size == 0) return 0;
  return std::min(value.size(), static_cast<int64_t>(value.bytes.size()) / size);
}

// Removes inputs that nothing reads and renumbers the others.
Subject WithoutUnusedInputs(const Subject& subject) {
  Subject result = subject;
  result.graph.inputs.clear();
  result.inputs.clear();
  ops::Builder builder(*subject.graph.context);
  ir::Substitution renumbered;
  for (const Node* node : ir::TopologicalOrder(subject.graph.outputs)) {
    if (node->op() != Op::kInput) continue;
    const auto index = static_cast<int64_t>(result.inputs.size());
    renumbered[node] = builder.Input(index, node->dtype(), node->shape());
    result.graph.inputs.push_back({node->dtype(), node->shape()});
    result.inputs.push_back(ValueOf(subject, node));
  }
  result.graph.outputs = ir::Substitute(*subject.graph.context, subject.graph.outputs, renumbered);
  return result;
}

class Shrinker {
 public:
  Shrinker(Subject subject, const Check& check, int checks_max)
      : subject_(std::move(subject)),
        weight_(WeightOf(subject_)),
        check_(check),
        checks_left_(checks_max) {
    subject_.tolerances.resize(subject_.graph.outputs.size(), 0);
  }

  Subject Run() {
    Try(subject_);
    OneOutput();
    for (bool smaller = true; smaller && checks_left_ > 0;) {
      smaller = CutChunks();
      smaller |= DropOutputs();
      smaller |= OperandsForOutput();
      smaller |= ReplaceNodes();
    }
    SimplerNumbers();
    return subject_;
  }

 private:
  // Returns true if the candidate weighs less and fails, too; it then becomes the subject.
  bool Try(const Subject& candidate) {
    Subject compact = WithoutUnusedInputs(candidate);
    const Weight weight = WeightOf(compact);
    if (!(weight < weight_) || !Fails(compact)) return false;
    subject_ = std::move(compact);
    weight_ = weight;
    return true;
  }

  bool Fails(const Subject& candidate) {
    if (checks_left_ <= 0) return false;
    --checks_left_;
    return !check_(candidate).empty();
  }

  bool OneOutput() {
    if (subject_.graph.outputs.size() < 2) return false;
    for (size_t i = 0; i < subject_.graph.outputs.size(); ++i) {
      Subject candidate = subject_;
      candidate.graph.outputs = {subject_.graph.outputs[i]};
      candidate.tolerances = {subject_.tolerances[i]};
      if (Try(candidate)) return true;
    }
    return false;
  }

  // If there are several outputs, drops those without which it still fails.
  bool DropOutputs() {
    bool smaller = false;
    for (size_t i = 0; i < subject_.graph.outputs.size() && subject_.graph.outputs.size() > 1;) {
      Subject candidate = subject_;
      candidate.graph.outputs.erase(candidate.graph.outputs.begin() + static_cast<int64_t>(i));
      candidate.tolerances.erase(candidate.tolerances.begin() + static_cast<int64_t>(i));
      if (Try(candidate)) {
        smaller = true;
      } else {
        ++i;
      }
    }
    return smaller;
  }

  std::vector<const Node*> Inner() const {
    std::vector<const Node*> nodes = ir::TopologicalOrder(subject_.graph.outputs);
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), IsLeaf), nodes.end());
    return nodes;
  }

  // Replaces runs of nodes by inputs that hold their values: halves first, then shorter runs.
  bool CutChunks() {
    bool smaller = false;
    for (size_t length = std::max<size_t>(1, Inner().size() / 2);; length /= 2) {
      for (size_t begin = 0; begin < Inner().size();) {
        if (Cut(begin, length)) {
          smaller = true;  // the nodes after it have moved to its place
        } else {
          begin += length;
        }
        if (checks_left_ <= 0) return smaller;
      }
      if (length == 1) return smaller;
    }
  }

  bool Cut(size_t begin, size_t length) {
    const std::vector<const Node*> nodes = Inner();
    const size_t end = std::min(begin + length, nodes.size());
    const std::vector<const Node*> cut(nodes.begin() + begin, nodes.begin() + end);
    // The interpreter accepts only legal nodes; illegal ones may be the defect itself.
    if (!ir::Verify(ir::Level::kTensor, cut).ok()) return false;
    const auto values = ops::Evaluate(cut, subject_.inputs);
    if (!values.ok()) return false;
    Subject candidate = subject_;
    ops::Builder builder(*candidate.graph.context);
    ir::Substitution substitution;
    for (size_t i = 0; i < cut.size(); ++i) {
      const auto index = static_cast<int64_t>(candidate.inputs.size());
      substitution[cut[i]] = builder.Input(index, cut[i]->dtype(), cut[i]->shape());
      candidate.graph.inputs.push_back({cut[i]->dtype(), cut[i]->shape()});
      candidate.inputs.push_back((*values)[i]);
    }
    return TrySubstituted(std::move(candidate), substitution);
  }

  bool TrySubstituted(Subject candidate, const ir::Substitution& substitution) {
    candidate.graph.outputs =
        ir::Substitute(*candidate.graph.context, candidate.graph.outputs, substitution);
    return Try(candidate);
  }

  bool OperandsForOutput() {
    bool smaller = false;
    while (subject_.graph.outputs.size() == 1 && TryOperandOf(subject_.graph.outputs[0])) {
      smaller = true;
    }
    return smaller;
  }

  bool TryOperandOf(const Node* output) {
    for (const Node* operand : output->operands()) {
      Subject candidate = subject_;
      candidate.graph.outputs = {operand};
      if (Try(candidate)) return true;
    }
    return false;
  }

  // Replaces each node by one of its operands, or by zeros.
  bool ReplaceNodes() {
    bool smaller = false;
    ops::Builder builder(*subject_.graph.context);
    for (size_t i = 0; i < Inner().size() && checks_left_ > 0; ++i) {
      const Node* node = Inner()[i];
      std::vector<const Node*> simpler;
      for (const Node* operand : node->operands()) {
        if (HasTypeOf(operand, node)) simpler.push_back(operand);
      }
      simpler.push_back(builder.Full(node->dtype(), node->shape(), 0));
      for (const Node* other : simpler) {
        if (!TrySubstituted(subject_, {{node, other}})) continue;
        smaller = true;
        break;
      }
    }
    return smaller;
  }

  // Replaces inputs by zeros or ones, or keeps their first half.
  void SimplerNumbers() {
    for (size_t i = 0; i < subject_.inputs.size(); ++i) {
      for (const double number : {0.0, 1.0}) {
        if (TryNumbers(i, 0, number)) break;
      }
      const int64_t size = CountElements(subject_.inputs[i]);
      for (int64_t kept = size / 2; kept > 0 && kept < size; kept = (kept + size + 1) / 2) {
        if (TryNumbers(i, kept, 0)) break;
      }
    }
  }

  bool TryNumbers(size_t input, int64_t kept, double number) {
    Subject candidate = subject_;
    HostTensor& value = candidate.inputs[input];
    for (int64_t i = kept; i < CountElements(value); ++i) {
      if (ir::IsFloat(value.dtype)) {
        value.SetFloat(i, number);
      } else {
        value.SetInt(i, static_cast<int64_t>(number));
      }
    }
    if (value.bytes == subject_.inputs[input].bytes || !Fails(candidate)) return false;
    subject_ = std::move(candidate);
    return true;
  }

  Subject subject_;
  Weight weight_;
  const Check& check_;
  int checks_left_;
};

}  // namespace

Subject Shrink(Subject subject, const Check& check, int checks_max) {
  return Shrinker(std::move(subject), check, checks_max).Run();
}

std::string Print(const Subject& subject) {
  constexpr int64_t kPrintedMax = 64;
  std::string text = graph::Print(subject.graph);
  for (size_t i = 0; i < subject.inputs.size(); ++i) {
    const HostTensor& value = subject.inputs[i];
    StrAppend(&text, "# input ", i, ":");
    const int64_t size = CountElements(value);
    for (int64_t k = 0; k < std::min(size, kPrintedMax); ++k) {
      if (ir::IsFloat(value.dtype)) {
        StrAppend(&text, " ", absl::StrFormat("%.17g", value.Float(k)));
      } else {
        StrAppend(&text, " ", value.Int(k));
      }
    }
    StrAppend(&text, size > kPrintedMax ? " …\n" : "\n");
  }
  return text;
}

}  // namespace kiln::random_graphs
