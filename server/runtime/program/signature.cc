#include "server/runtime/program/signature.h"

namespace kiln::runtime {
namespace {

TensorTypePointer TypeOf(ir::DType dtype, const ir::Shape& shape) {
  return std::make_shared<const buffers::TensorType>(buffers::TensorType{dtype, shape});
}

}  // namespace

Signature Signature::Of(const graph::Graph& graph) {
  Signature signature;
  for (const graph::Input& input : graph.inputs)
    signature.inputs.push_back(TypeOf(input.dtype, input.shape));
  for (const ir::Node* output : graph.outputs)
    signature.outputs.push_back(TypeOf(output->dtype(), output->shape()));
  for (const graph::Update& update : graph.updates) {
    // The same object as the input's, so that comparing a result with the next run's input is fast.
    signature.updates.push_back(signature.inputs[update.input]);
    signature.updated_inputs.push_back(update.input);
  }
  return signature;
}

Signature Signature::Of(const graph::Graph& graph, const std::vector<std::string>& devices) {
  Signature signature = Of(graph);
  if (graph.sharding == nullptr) return signature;
  if (graph.sharding->stages) {
    signature.input_members = graph.sharding->stages->inputs;
    signature.result_members = graph.sharding->stages->outputs;
    for (const graph::Update& update : graph.updates)
      signature.result_members.push_back(signature.input_members[update.input]);
    return signature;
  }
  const auto place = [&](const std::vector<graph::Spec>& specs, size_t index) {
    auto placement = std::make_shared<buffers::Placement>();
    placement->devices = devices;
    placement->mesh = graph.sharding->mesh;
    if (index < specs.size()) placement->spec = specs[index];
    return placement;
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    signature.input_placements.push_back(place(graph.sharding->inputs, i));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    signature.result_placements.push_back(place(graph.sharding->outputs, i));
  // The same object, so that comparing a result with the next run's input is fast.
  for (const graph::Update& update : graph.updates)
    signature.result_placements.push_back(signature.input_placements[update.input]);
  return signature;
}

int64_t Signature::result_bytes() const {
  int64_t bytes = 0;
  for (const TensorTypePointer& type : outputs) bytes += type->bytes();
  for (const TensorTypePointer& type : updates) bytes += type->bytes();
  return bytes;
}

}  // namespace kiln::runtime
