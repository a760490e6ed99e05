#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/call.h"
#include "clients/cpp/op_row.h"
#include "clients/cpp/placement.h"
#include "kiln/graph.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

// Writes one alternative of a dimension to the wire.
struct DimensionWriter {
  v1::Dim& to;
  void operator()(int64_t size) const { to.set_size(size); }
  void operator()(const std::string& variable) const { to.set_variable(variable); }
  void operator()(const DimensionSum& sum) const {
    to.mutable_sum()->set_constant(sum.constant);
    for (const auto& [variable, factor] : sum.terms) {
      v1::Sum::Term* term = to.mutable_sum()->add_terms();
      term->set_variable(variable);
      term->set_factor(factor);
    }
  }
};

void SetShape(const std::vector<Dimension>& dimensions, v1::Shape* shape) {
  for (const Dimension& dimension : dimensions)
    std::visit(DimensionWriter{*shape->add_dims()}, dimension);
}

// Writes one alternative of an attribute to the wire.
struct AttributeWriter {
  v1::Attribute& to;
  void operator()(int64_t value) const { to.set_i(value); }
  void operator()(double value) const { to.set_f(value); }
  void operator()(bool value) const { to.set_b(value); }
  void operator()(const std::string& value) const { to.set_s(value); }
  void operator()(const std::vector<int64_t>& values) const {
    for (int64_t value : values) to.mutable_ints()->add_values(value);
    to.mutable_ints();  // an empty list is a list
  }
  void operator()(const std::vector<Dimension>& dimensions) const {
    SetShape(dimensions, to.mutable_shape());
  }
  void operator()(const DimensionSum& sum) const { DimensionWriter{*to.mutable_dim()}(sum); }
};

// Adds the devices of inputs and outputs.
void AddStages(const std::vector<int>& devices, v1::Graph* graph) {
  v1::Stages* stages = graph->mutable_sharding()->mutable_stages();
  for (int i = 0; i < graph->nodes_size(); ++i) {
    // Inputs were numbered in this order.
    if (graph->nodes(i).op() == "input") stages->add_inputs(static_cast<uint32_t>(devices[i]));
  }
  for (const uint32_t output : graph->outputs())
    stages->add_outputs(static_cast<uint32_t>(std::max(devices[output], 0)));
}

}  // namespace

GraphBuilder::GraphBuilder() : proto_(std::make_unique<v1::Graph>()) {
  proto_->set_op_set_version(internal::OpSetVersion());
}
GraphBuilder::~GraphBuilder() = default;

Value GraphBuilder::Fail(const absl::Status& mistake) {
  // Keeps the first error: later ones are mostly its consequences.
  status_.Update(mistake);
  return Value(this, -1, DType::kUnspecified);
}

bool GraphBuilder::Check(const Value& value, std::string_view where, std::string_view what) {
  if (value.builder_ == this && value.node_ >= 0) return true;
  if (value.builder_ == this) return false;  // an invalid value, whose error has been kept
  Fail(absl::InvalidArgumentError(
      absl::StrCat(std::string(where), ": ", std::string(what),
                   value.builder_ == nullptr ? " is not a value: it was never assigned, or "
                                               "computed only from numbers or unassigned values"
                                             : " belongs to another GraphBuilder; a value belongs "
                                               "to one graph, but a tensor can be used in all")));
  return false;
}

void GraphBuilder::Variable(std::string name, int64_t min, int64_t max) {
  v1::Variable* variable = proto_->add_variables();
  variable->set_name(std::move(name));
  variable->set_min(min);
  variable->set_max(max);
}

Value GraphBuilder::AddNode(std::string_view op, absl::Span<const Value> operands,
                            const Attributes& attributes, DType dtype, Location location) {
  const int number = proto_->nodes_size();
  const std::string source = internal::SourceOf(location);
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string where =
        absl::StrCat("node ", number, " \"", std::string(op), "\" (", source, ")");
    if (!Check(operands[i], where, absl::StrCat("operand ", i)))
      return Value(this, -1, DType::kUnspecified);
  }
  v1::Node* node = proto_->add_nodes();
  node->set_op(std::string(op));
  node->set_dtype(static_cast<v1::DType>(dtype));
  // For the daemon's messages, which then show the caller's line.
  node->set_source(source);
  for (const Value& operand : operands) node->add_operands(operand.node_);
  devices_.push_back(DeviceOf(op, operands, attributes));
  for (const auto& [name, value] : attributes)
    std::visit(AttributeWriter{(*node->mutable_attributes())[name]}, value);
  // The daemon may know ops that this client does not; then only the daemon knows the dtype.
  const internal::OpRow* row = internal::FindRow(op);
  return Value(this, number,
               row == nullptr ? DType::kUnspecified : internal::ResultDType(*row, operands, dtype));
}

Value GraphBuilder::Input(DType dtype, const Dimensions& shape, Location location) {
  return AddNode("input", {}, {{"index", int64_t{num_inputs_++}}, {"shape", shape.list()}}, dtype,
                 location);
}

void GraphBuilder::SetFloat32MatmulPrecision(MatmulPrecision precision) {
  proto_->set_float32_matmul_precision(precision == MatmulPrecision::kHigh
                                           ? v1::MATMUL_PRECISION_HIGH
                                           : v1::MATMUL_PRECISION_UNSPECIFIED);
}

void GraphBuilder::SetMesh(Mesh mesh) {
  mesh_ = std::move(mesh);
  in_stages_ = false;
  v1::Mesh* wire = proto_->mutable_sharding()->mutable_mesh();
  wire->Clear();
  if (const absl::Status status = client::SetMesh(mesh_, wire); !status.ok()) Fail(status);
}

void GraphBuilder::Lay(Value input, const Spec& spec) {
  if (!Check(input, "Lay", "the input")) return;
  const v1::Node& node = proto_->nodes(input.node_);
  if (node.op() != "input") {
    Fail(absl::InvalidArgumentError(absl::StrCat("Lay: node ", input.node_, " is not an input")));
    return;
  }
  v1::Sharding* sharding = proto_->mutable_sharding();
  const int64_t index = node.attributes().at("index").i();
  while (sharding->inputs_size() <= index) sharding->add_inputs();
  v1::Spec* wire = sharding->mutable_inputs(static_cast<int>(index));
  wire->Clear();
  if (const absl::Status status = client::SetSpec(spec, mesh_, wire); !status.ok()) Fail(status);
}

Value GraphBuilder::Shard(Value x, const Spec& spec, Location location) {
  const absl::StatusOr<std::vector<int64_t>> ints = client::SpecInts(spec, mesh_);
  if (!ints.ok()) return Fail(ints.status());
  return AddNode("shard", {x}, {{"spec", *ints}}, DType::kUnspecified, location);
}

void GraphBuilder::SetStages(std::vector<std::string> devices) {
  const auto count = static_cast<uint32_t>(devices.size());
  SetMesh({.axes = {{"stage", count}}, .devices = std::move(devices)});
  in_stages_ = true;
}

int GraphBuilder::FindDevice(std::string_view device, std::string_view where) {
  const auto found = std::find(mesh_.devices.begin(), mesh_.devices.end(), device);
  if (in_stages_ && found != mesh_.devices.end())
    return static_cast<int>(found - mesh_.devices.begin());
  Fail(absl::InvalidArgumentError(absl::StrCat(
      std::string(where), ": \"", std::string(device), "\" is not a device of the stages",
      in_stages_ ? "" : ", because there are no stages; call SetStages first")));
  return -1;
}

int GraphBuilder::DeviceOf(std::string_view op, absl::Span<const Value> operands,
                           const Attributes& attributes) const {
  if (op == "input") return 0;
  // A value that depends on no input is computed on the target itself.
  if (op == "send" && devices_[operands[0].node_] >= 0) {
    for (const auto& [name, value] : attributes) {
      const auto* target = std::get_if<int64_t>(&value);
      if (name == "target" && target != nullptr) return static_cast<int>(*target);
    }
  }
  // y may be on another device; dy/dx is on x's device.
  if (op == "gradient" && operands.size() > 1) return devices_[operands[1].node_];
  for (const Value& operand : operands)
    if (devices_[operand.node_] >= 0) return devices_[operand.node_];
  return -1;
}

void GraphBuilder::PutOn(Value input, std::string_view device) {
  if (!Check(input, "PutOn", "the input")) return;
  if (proto_->nodes(input.node_).op() != "input") {
    Fail(absl::InvalidArgumentError(absl::StrCat("PutOn: node ", input.node_, " is not an input")));
    return;
  }
  for (const v1::Node& node : proto_->nodes()) {
    if (std::find(node.operands().begin(), node.operands().end(), input.node_) ==
        node.operands().end())
      continue;
    Fail(absl::InvalidArgumentError(absl::StrCat("PutOn: the graph already uses node ", input.node_,
                                                 "; call PutOn before you use it")));
    return;
  }
  if (const int number = FindDevice(device, "PutOn"); number >= 0) devices_[input.node_] = number;
}

Value GraphBuilder::Send(Value x, std::string_view device, Location location) {
  const int target = FindDevice(device, "Send");
  if (target < 0 || !Check(x, "Send", "x")) return Value(this, -1, DType::kUnspecified);
  const int64_t source = std::max(devices_[x.node_], 0);
  return AddNode("send", {x}, {{"source", source}, {"target", int64_t{target}}},
                 DType::kUnspecified, location);
}

void GraphBuilder::Output(Value value, const Spec& spec) {
  const int number = proto_->outputs_size();
  if (!Check(value, absl::StrCat("output ", number), "it")) return;
  proto_->add_outputs(value.node_);
  if (spec.empty()) return;
  v1::Sharding* sharding = proto_->mutable_sharding();
  while (sharding->outputs_size() <= number) sharding->add_outputs();
  const absl::Status status = client::SetSpec(spec, mesh_, sharding->mutable_outputs(number));
  if (!status.ok()) Fail(status);
}

void GraphBuilder::Update(Value input, Value value) {
  const std::string where = absl::StrCat("update ", proto_->updates_size());
  if (!Check(input, where, "the input") || !Check(value, where, "the value")) return;
  if (proto_->nodes(input.node_).op() != "input") {
    Fail(absl::InvalidArgumentError(
        absl::StrCat(where, ": node ", input.node_, " is not an input")));
    return;
  }
  v1::Update* update = proto_->add_updates();
  update->set_input(input.node_);
  update->set_value(value.node_);
}

absl::StatusOr<Graph> GraphBuilder::Build() const {
  if (!status_.ok()) return status_;
  Graph graph;
  const auto proto = std::make_shared<v1::Graph>(*proto_);
  if (in_stages_) AddStages(devices_, proto.get());
  graph.proto_ = proto;
  graph.devices_ = mesh_.devices;
  graph.num_inputs_ = num_inputs_;
  graph.num_outputs_ = proto_->outputs_size();
  return graph;
}

}  // namespace kiln
