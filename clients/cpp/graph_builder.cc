#include "absl/strings/str_cat.h"
#include "clients/cpp/kiln/client.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

// The op set this client's helpers were written for.
constexpr uint32_t kOpSetVersion = 2;

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

}  // namespace

int SizeOf(DType dtype) {
  static constexpr int kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
  return kSizes[static_cast<int>(dtype)];
}

GraphBuilder::GraphBuilder() : proto_(std::make_unique<v1::Graph>()) {
  proto_->set_op_set_version(kOpSetVersion);
}
GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::Fail(const absl::Status& status) { status_.Update(status); }

bool GraphBuilder::Check(Value value, std::string_view where) {
  if (value.node >= 0 && value.node < proto_->nodes_size()) return true;
  Fail(absl::InvalidArgumentError(absl::StrCat(std::string(where),
                                               ": the value is not of this builder (node ",
                                               value.node, " of ", proto_->nodes_size(), ")")));
  return false;
}

void GraphBuilder::Variable(std::string name, int64_t min, int64_t max) {
  v1::Variable* variable = proto_->add_variables();
  variable->set_name(std::move(name));
  variable->set_min(min);
  variable->set_max(max);
}

Value GraphBuilder::AddNode(std::string_view op, absl::Span<const Value> operands,
                            const Attributes& attributes, DType dtype) {
  const int number = proto_->nodes_size();
  for (Value operand : operands) {
    if (!Check(operand, absl::StrCat("node ", number, " (", std::string(op), ")"))) return Value{};
  }
  v1::Node* node = proto_->add_nodes();
  node->set_op(std::string(op));
  node->set_dtype(static_cast<v1::DType>(dtype));
  for (Value operand : operands) node->add_operands(operand.node);
  for (const auto& [name, value] : attributes)
    std::visit(AttributeWriter{(*node->mutable_attributes())[name]}, value);
  return Value{number};
}

Value GraphBuilder::Input(DType dtype, std::vector<Dimension> shape) {
  Value value = AddNode(
      "input", {}, {{"index", static_cast<int64_t>(inputs_.size())}, {"shape", std::move(shape)}},
      dtype);
  inputs_.push_back(value);
  return value;
}

Value GraphBuilder::Constant(DType dtype, double value) {
  return AddNode("const", {}, {{"value", value}, {"shape", std::vector<Dimension>{}}}, dtype);
}

Value GraphBuilder::Sum(Value x, std::vector<int64_t> axes, bool keepdims) {
  return AddNode("sum", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}
Value GraphBuilder::Mean(Value x, std::vector<int64_t> axes, bool keepdims) {
  return AddNode("mean", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}
Value GraphBuilder::Max(Value x, std::vector<int64_t> axes, bool keepdims) {
  return AddNode("max", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}

void GraphBuilder::Output(Value value) {
  if (Check(value, absl::StrCat("output ", proto_->outputs_size())))
    proto_->add_outputs(value.node);
}

void GraphBuilder::Update(Value input, Value value) {
  const std::string where = absl::StrCat("update ", proto_->updates_size());
  if (!Check(input, where) || !Check(value, where)) return;
  if (proto_->nodes(input.node).op() != "input") {
    return Fail(
        absl::InvalidArgumentError(absl::StrCat(where, ": node ", input.node, " is no input")));
  }
  v1::Update* update = proto_->add_updates();
  update->set_input(input.node);
  update->set_value(value.node);
}

absl::StatusOr<Graph> GraphBuilder::Build() const {
  if (!status_.ok()) return status_;
  Graph graph;
  graph.proto_ = std::make_shared<v1::Graph>(*proto_);
  graph.num_inputs_ = static_cast<int>(inputs_.size());
  graph.num_outputs_ = proto_->outputs_size();
  return graph;
}

}  // namespace kiln
