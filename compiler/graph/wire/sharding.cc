#include "compiler/graph/wire/sharding.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/graph/error.h"
#include "compiler/graph/stages.h"
#include "compiler/graph/wire/label.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {
namespace {

using WireSpecs = google::protobuf::RepeatedPtrField<v1::Spec>;

// Returns a spec with a list for each dimension, including those that the message omits.
absl::StatusOr<Spec> ReadSpec(const Mesh& mesh, const v1::Spec& proto, const ir::Shape& shape,
                              std::string_view what) {
  // Checked before anything is copied.
  if (proto.dims_size() > static_cast<int>(shape.size())) {
    return MakeError(
        "MESH", {},
        StrCat(what, " has ", shape.size(), " dimensions, but its spec has ", proto.dims_size()));
  }
  Spec spec(shape.size());
  for (int dim = 0; dim < proto.dims_size(); ++dim) {
    for (const uint32_t axis : proto.dims(dim).axes()) {
      if (axis >= mesh.axes.size()) {
        return MakeError("MESH", {},
                         StrCat(what, " is split by axis ", axis, " of a mesh that has ",
                                mesh.axes.size(), " axes"));
      }
      spec[dim].push_back(static_cast<int>(axis));
    }
  }
  if (absl::Status fits = CheckSpec(mesh, spec, shape, what); !fits.ok()) return fits;
  return spec;
}

absl::StatusOr<std::vector<Spec>> ReadSpecs(const Mesh& mesh, const WireSpecs& protos,
                                            const std::vector<ir::Shape>& shapes,
                                            std::string_view what) {
  if (protos.size() > static_cast<int>(shapes.size())) {
    return MakeError("MESH", {},
                     StrCat("the sharding is for ", protos.size(), " ", what,
                            "s, but the graph has ", shapes.size()));
  }
  std::vector<Spec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    static const auto& none = *new v1::Spec;
    const v1::Spec& proto =
        i < static_cast<size_t>(protos.size()) ? protos[static_cast<int>(i)] : none;
    absl::StatusOr<Spec> spec = ReadSpec(mesh, proto, shapes[i], StrCat(what, " ", i));
    if (!spec.ok()) return spec.status();
    specs.push_back(*std::move(spec));
  }
  return specs;
}

// Numbers too large for int become a number that CheckStages refuses.
std::vector<int> ReadDevices(const google::protobuf::RepeatedField<uint32_t>& protos) {
  std::vector<int> devices;
  for (const uint32_t device : protos) {
    devices.push_back(
        static_cast<int>(std::min<uint32_t>(device, std::numeric_limits<int>::max())));
  }
  return devices;
}

absl::Status ReadStages(const v1::Graph& proto, const Graph& graph,
                        const std::vector<const ir::Node*>& nodes, Sharding* sharding) {
  const v1::Stages& stages = proto.sharding().stages();
  sharding->stages = Stages{ReadDevices(stages.inputs()), ReadDevices(stages.outputs())};
  if (absl::Status legal = CheckStages(*sharding); !legal.ok()) return legal;
  Graph placed = graph;
  placed.sharding = std::make_shared<const Sharding>(*sharding);
  HomeFinder finder(placed);
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const absl::Status added = finder.Add(nodes[i]);
    if (!added.ok()) return AboutNode(proto, i, "STAGES", added);
  }
  return finder.CheckResults();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Sharding>> ReadSharding(
    const v1::Graph& proto, const Graph& graph, const std::vector<const ir::Node*>& nodes) {
  if (!proto.has_sharding()) return nullptr;
  if (proto.variables_size() > 0) {
    return MakeError(
        "MESH", {},
        "the graph has a mesh and variables; dimensions of tensors on a mesh must be numbers");
  }
  auto sharding = std::make_shared<Sharding>();
  Mesh& mesh = sharding->mesh;
  for (const v1::Mesh::Axis& axis : proto.sharding().mesh().axes()) {
    // One axis more than allowed is enough for CheckMesh to refuse.
    if (mesh.axes.size() > kMeshAxesMax) break;
    mesh.axes.push_back({axis.name(), axis.size()});
  }
  if (absl::Status legal = CheckMesh(mesh); !legal.ok()) return legal;
  std::vector<ir::Shape> inputs;
  for (const Input& input : graph.inputs) inputs.push_back(input.shape);
  absl::StatusOr<std::vector<Spec>> specs =
      ReadSpecs(mesh, proto.sharding().inputs(), inputs, "input");
  if (!specs.ok()) return specs.status();
  sharding->inputs = *std::move(specs);
  std::vector<ir::Shape> outputs;
  for (const ir::Node* output : graph.outputs) outputs.push_back(output->shape());
  specs = ReadSpecs(mesh, proto.sharding().outputs(), outputs, "output");
  if (!specs.ok()) return specs.status();
  sharding->outputs = *std::move(specs);
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (nodes[i]->op() != ir::Op::kShard || proto.nodes(i).op() != "shard") continue;
    const Spec spec = Decode(ir::IntsOf(nodes[i]), nodes[i]->shape().size());
    const absl::Status fits = CheckSpec(mesh, spec, nodes[i]->shape(), "its value");
    if (!fits.ok()) return AboutNode(proto, i, "MESH", fits);
  }
  if (proto.sharding().has_stages()) {
    if (absl::Status legal = ReadStages(proto, graph, nodes, sharding.get()); !legal.ok())
      return legal;
  }
  return sharding;
}

}  // namespace kiln::graph
