#include "compiler/graph/stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"

namespace kiln::graph {
namespace {

using ir::Node;
using ir::Op;

absl::Status Wrong(std::string_view message) { return MakeError("STAGES", {}, message); }

}  // namespace

HomeFinder::HomeFinder(const Graph& graph) : graph_(graph), stages_(*graph.sharding->stages) {}

absl::Status HomeFinder::Add(const Node* value) {
  for (const Node* node : walk_.Visit(value)) {
    const absl::StatusOr<int> home = Find(node);
    if (!home.ok()) return home.status();
    homes_[node] = *home;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> HomeFinder::Find(const Node* node) const {
  if (node->op() == Op::kInput) return stages_.inputs[node->attr<ir::InputAttr>().index];
  if (node->op() == Op::kSend) return FindOfSend(node);
  if (node->op() == Op::kGradient) return FindOfGradient(node);
  int home = kAnywhere;
  for (const Node* operand : node->operands()) {
    const int other = homes_.at(operand);
    if (other == kAnywhere || other == home) continue;
    if (home != kAnywhere) {
      return Wrong(StrCat(ir::Describe(node), " has operands on the devices ", home, " and ", other,
                          "; send one of them to the device of the other"));
    }
    home = other;
  }
  return home;
}

absl::StatusOr<int> HomeFinder::FindOfSend(const Node* send) const {
  const std::vector<int64_t>& devices = ir::IntsOf(send);
  const int64_t count = NumDevices(graph_.sharding->mesh);
  const int64_t highest = std::max(devices[0], devices[1]);
  if (highest >= count) {
    return Wrong(StrCat(ir::Describe(send), " names device ", highest, " of ", count));
  }
  const int home = homes_.at(send->operand(0));
  if (home == kAnywhere) return home;
  if (home != devices[0]) {
    return Wrong(StrCat(ir::Describe(send), " sends from device ", devices[0],
                        " a value that is on device ", home));
  }
  return static_cast<int>(devices[1]);
}

// dy/dx is on x's device; the upstream gradient is on y's device.
absl::StatusOr<int> HomeFinder::FindOfGradient(const Node* gradient) const {
  if (gradient->operands().size() == 3) {
    const int y = homes_.at(gradient->operand(0));
    const int upstream = homes_.at(gradient->operand(2));
    if (y != kAnywhere && upstream != kAnywhere && y != upstream) {
      return Wrong(StrCat(ir::Describe(gradient), " has its upstream on device ", upstream,
                          ", but y is on device ", y, "; send it there"));
    }
  }
  return homes_.at(gradient->operand(1));
}

absl::Status HomeFinder::CheckResults() const {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    absl::Status status = CheckResult(StrCat("output ", i), graph_.outputs[i], stages_.outputs[i]);
    if (!status.ok()) return status;
  }
  for (const Update& update : graph_.updates) {
    absl::Status status = CheckResult(StrCat("the update of input ", update.input), update.value,
                                      stages_.inputs[update.input]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status HomeFinder::CheckResult(std::string_view what, const Node* value, int wanted) const {
  const int home = homes_.at(value);
  if (home == kAnywhere || home == wanted) return absl::OkStatus();
  return Wrong(StrCat(what, " is computed on device ", home, " but must be on device ", wanted,
                      "; send it there"));
}

absl::StatusOr<Homes> FindHomes(const Graph& graph) {
  HomeFinder finder(graph);
  for (const Node* root : Roots(graph)) {
    if (absl::Status status = finder.Add(root); !status.ok()) return status;
  }
  if (absl::Status status = finder.CheckResults(); !status.ok()) return status;
  return finder.homes();
}

absl::Status CheckStages(const Sharding& sharding) {
  const auto is_whole = [](const std::vector<Spec>& specs) {
    return std::all_of(specs.begin(), specs.end(), IsWhole);
  };
  if (sharding.mesh.axes.size() != 1 || !is_whole(sharding.inputs) || !is_whole(sharding.outputs)) {
    return Wrong("a graph in stages must have a mesh of one axis and must not split tensors");
  }
  if (sharding.stages->inputs.size() != sharding.inputs.size() ||
      sharding.stages->outputs.size() != sharding.outputs.size()) {
    return Wrong("a graph in stages must name a device for each input and output");
  }
  const int64_t count = NumDevices(sharding.mesh);
  for (const std::vector<int>* devices : {&sharding.stages->inputs, &sharding.stages->outputs}) {
    for (const int device : *devices) {
      if (device >= 0 && device < count) continue;
      return Wrong(
          StrCat("a graph in stages on ", count, " devices must not name device ", device));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::graph
