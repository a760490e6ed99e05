#include "compiler/graph/verify.h"

#include "absl/container/flat_hash_set.h"
#include "compiler/graph/stages.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {
namespace {

absl::Status Illegal(std::string_view a, std::string_view b = "", std::string_view c = "") {
  return absl::InternalError(StrCat("illegal graph: ", a, b, c));
}

absl::Status VerifyInputs(const Graph& graph, const std::vector<const ir::Node*>& roots) {
  for (const ir::Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() != ir::Op::kInput) continue;
    int64_t index = node->attr<ir::InputAttr>().index;
    if (index < 0 || index >= static_cast<int64_t>(graph.inputs.size())) {
      return Illegal(ir::Describe(node), ": no such input is declared");
    }
    const Input& input = graph.inputs[index];
    if (input.dtype != node->dtype() || input.shape != node->shape()) {
      return Illegal(ir::Describe(node), ": the input is declared as ",
                     ir::TypeText(input.dtype, input.shape));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyUpdates(const Graph& graph) {
  absl::flat_hash_set<int> updated;
  for (const Update& update : graph.updates) {
    std::string name = StrCat("update of input ", update.input);
    if (update.input < 0 || update.input >= static_cast<int>(graph.inputs.size())) {
      return Illegal(name, ": no such input is declared");
    }
    const Input& input = graph.inputs[update.input];
    if (input.dtype != update.value->dtype() || input.shape != update.value->shape()) {
      return Illegal(name, " by ",
                     StrCat(ir::TypeText(update.value->dtype(), update.value->shape()), ": it is ",
                            ir::TypeText(input.dtype, input.shape)));
    }
    // An input has only one value after a run.
    if (!updated.insert(update.input).second) return Illegal(name, ": it has two updates");
  }
  return absl::OkStatus();
}

absl::Status VerifyStages(const Graph& graph) {
  absl::Status status = CheckStages(*graph.sharding);
  if (status.ok()) status = FindHomes(graph).status();
  return status.ok() ? status : Illegal(StrCat(status.message()));
}

absl::Status VerifySharding(const Graph& graph, const std::vector<const ir::Node*>& roots) {
  if (graph.sharding == nullptr) return absl::OkStatus();
  const Sharding& sharding = *graph.sharding;
  if (absl::Status legal = CheckMesh(sharding.mesh); !legal.ok())
    return Illegal(StrCat(legal.message()));
  if (sharding.inputs.size() != graph.inputs.size() ||
      sharding.outputs.size() != graph.outputs.size()) {
    return Illegal("a mesh without a spec for each input and output");
  }
  const auto check = [&](const Spec& spec, const ir::Shape& shape, std::string_view what) {
    const absl::Status fits = CheckSpec(sharding.mesh, spec, shape, what);
    if (!fits.ok()) return Illegal(StrCat(fits.message()));
    return spec.size() == shape.size() ? fits : Illegal(what, ": a spec of another rank");
  };
  absl::Status status;
  for (size_t i = 0; i < graph.inputs.size() && status.ok(); ++i) {
    status = check(sharding.inputs[i], graph.inputs[i].shape, StrCat("input ", i));
  }
  for (size_t i = 0; i < graph.outputs.size() && status.ok(); ++i) {
    status = check(sharding.outputs[i], graph.outputs[i]->shape(), StrCat("output ", i));
  }
  if (sharding.stages && status.ok()) status = VerifyStages(graph);
  for (const ir::Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() != ir::Op::kShard || !status.ok()) continue;
    status =
        check(Decode(ir::IntsOf(node), node->shape().size()), node->shape(), ir::Describe(node));
  }
  return status;
}

}  // namespace

std::vector<const ir::Node*> Roots(const Graph& graph) {
  std::vector<const ir::Node*> roots = graph.outputs;
  for (const Update& update : graph.updates) roots.push_back(update.value);
  return roots;
}

Graph WithRoots(const Graph& graph, const std::vector<const ir::Node*>& roots) {
  Graph result = graph;
  size_t next = 0;
  for (const ir::Node*& output : result.outputs) output = roots[next++];
  for (Update& update : result.updates) update.value = roots[next++];
  return result;
}

absl::Status Verify(const Graph& graph) {
  std::vector<const ir::Node*> roots = Roots(graph);
  for (const ir::Node* root : roots) {
    if (root == nullptr) return Illegal("an output or update has no value");
  }
  for (const Input& input : graph.inputs) {
    // An input that nothing reads has no node that ir::Verify would check.
    if (!ir::CheckedNumElements(input.shape)) return Illegal("an input of no possible size");
  }
  absl::Status status = ir::Verify(ir::Level::kTensor, roots);
  if (status.ok()) status = VerifyInputs(graph, roots);
  if (status.ok()) status = VerifyUpdates(graph);
  if (status.ok()) status = VerifySharding(graph, roots);
  return status;
}

}  // namespace kiln::graph
