#include "tests/fuzz/graph_generator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "compiler/graph/wire/wire.h"
#include "compiler/ops/op_def.h"

namespace kiln::fuzz {
namespace {

using Type = ops::AttributeDef::Type;

constexpr std::array<v1::DType, 8> kDTypes = {
    v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64,
    v1::DTYPE_INT32,   v1::DTYPE_INT64,   v1::DTYPE_UINT8,   v1::DTYPE_BOOL};
constexpr std::array<int64_t, 10> kHurting = {-1,
                                              -2,
                                              1 << 20,
                                              int64_t{1} << 32,
                                              int64_t{1} << 62,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min(),
                                              1000,
                                              33,
                                              7};

constexpr std::array<const char*, 7> kWords = {"tanh",   "none",  "mean",         "sum",
                                               "linear", "cubic", "nearest-exact"};

int64_t SmallInt(Random& random) { return static_cast<int64_t>(Below(random, 5)); }
int64_t AnyInt(Random& random) {
  return OneIn(random, 4) ? kHurting[Below(random, kHurting.size())] : SmallInt(random) - 1;
}

v1::Shape SmallShape(Random& random, const v1::Graph& graph) {
  v1::Shape shape;
  for (size_t i = 0, rank = Below(random, 5); i < rank; ++i) {
    if (graph.variables_size() > 0 && OneIn(random, 4)) {
      shape.add_dims()->set_variable(graph.variables(0).name());
    } else {
      shape.add_dims()->set_size(OneIn(random, 20) ? 0 : 1 + SmallInt(random));
    }
  }
  return shape;
}

void SetValue(Random& random, const v1::Graph& graph, Type type, v1::Attribute* value) {
  switch (type) {
    case Type::kInt:
      value->set_i(SmallInt(random) - 1);
      break;
    case Type::kFloat:
      value->set_f(static_cast<double>(SmallInt(random)) / 2 - 1);
      break;
    case Type::kBool:
      value->set_b(OneIn(random, 2));
      break;
    case Type::kString:
      value->set_s(kWords[Below(random, kWords.size())]);
      break;
    case Type::kInts:
      value->mutable_ints();
      for (size_t i = 0, n = Below(random, 5); i < n; ++i) {
        value->mutable_ints()->add_values(SmallInt(random) - (OneIn(random, 4) ? 2 : 0));
      }
      break;
    case Type::kShape:
      *value->mutable_shape() = SmallShape(random, graph);
      break;
    case Type::kNumber:
      if (OneIn(random, 2)) {
        value->set_i(SmallInt(random));
      } else {
        value->set_f(static_cast<double>(SmallInt(random)) / 2);
      }
      break;
  }
}

v1::DType AnyDType(Random& random) { return kDTypes[Below(random, kDTypes.size())]; }

int CountInputs(const v1::Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const v1::Node& node) { return node.op() == "input"; }));
}

void AddOperands(Random& random, const ops::OpDef& op, int nodes, v1::Node* node) {
  for (std::string_view name : op.operands) {
    bool repeated = name.back() == '*';
    if (name.back() == '?' && OneIn(random, 2)) break;
    for (size_t i = 0, n = repeated ? 1 + Below(random, 3) : 1; i < n; ++i) {
      // Prefers recent nodes, for deeper graphs.
      size_t back = std::min(Below(random, nodes), Below(random, nodes));
      node->add_operands(nodes - 1 - static_cast<int>(back));
    }
  }
}

void AddAttributes(Random& random, const v1::Graph& graph, const ops::OpDef& op, v1::Node* node) {
  for (const ops::AttributeDef& def : op.attributes) {
    if (def.default_value.has_value() && OneIn(random, 2)) continue;
    SetValue(random, graph, def.type, &(*node->mutable_attributes())[std::string(def.name)]);
  }
}

v1::Node RandomNode(Random& random, const v1::Graph& graph) {
  absl::Span<const ops::OpDef> all = ops::AllOps();
  bool source = graph.nodes_size() == 0 || OneIn(random, 16);
  const ops::OpDef* op =
      source ? ops::FindOp(OneIn(random, 3) ? "const" : "input") : &all[Below(random, all.size())];
  v1::Node node;
  node.set_op(std::string(op->name));
  if (op->dtype_rule == ops::DTypeRule::kAttribute) node.set_dtype(AnyDType(random));
  if (graph.nodes_size() > 0) AddOperands(random, *op, graph.nodes_size(), &node);
  AddAttributes(random, graph, *op, &node);
  if (op->name == "input") (*node.mutable_attributes())["index"].set_i(CountInputs(graph));
  if (OneIn(random, 8)) node.set_source("train.py:" + std::to_string(Below(random, 100)));
  return node;
}

graph::Bindings SmallestBindings(const v1::Graph& graph) {
  graph::Bindings bindings;
  for (const v1::Variable& variable : graph.variables()) bindings[variable.name()] = 1;
  return bindings;
}

// Adds a node that the decoder accepts; after some failed tries leaves the graph unchanged.
template <typename MakeNode>
void AddAccepted(v1::Graph* graph, MakeNode make_node) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    *graph->add_nodes() = make_node();
    graph->clear_outputs();
    graph->add_outputs(graph->nodes_size() - 1);
    graph::Limits limits;
    limits.elements_max = 1 << 20;
    if (graph::FromProto(*graph, SmallestBindings(*graph), limits).ok()) return;
    graph->mutable_nodes()->RemoveLast();
  }
}

// Operands that only some ops accept, with those ops: drawn separately they would rarely meet.
struct Typed {
  v1::DType dtype;
  std::vector<int64_t> shape;
};
struct Call {
  const char* op;
  std::vector<uint32_t> operands;
};

v1::Node CallNode(Random& random, const v1::Graph& graph, const Call& call) {
  v1::Node node;
  node.set_op(call.op);
  node.mutable_operands()->Add(call.operands.begin(), call.operands.end());
  AddAttributes(random, graph, *ops::FindOp(call.op), &node);
  return node;
}

void AddSpecialNodes(Random& random, v1::Graph* graph) {
  static const auto& inputs =
      *new std::vector<Typed>{{v1::DTYPE_FLOAT32, {2, 3, 4, 4}}, {v1::DTYPE_FLOAT32, {4, 3, 3, 3}},
                              {v1::DTYPE_FLOAT32, {3}},          {v1::DTYPE_UINT32, {2}},
                              {v1::DTYPE_FLOAT32, {2, 3}},       {v1::DTYPE_INT64, {2}},
                              {v1::DTYPE_FLOAT32, {2, 2, 2, 3}}, {v1::DTYPE_FLOAT32, {3, 2, 2, 2}}};
  static const auto& calls = *new std::vector<Call>{{"conv2d", {0, 1}},
                                                    {"batch_norm", {0, 2, 2, 2, 2}},
                                                    {"max_pool2d", {0}},
                                                    {"avg_pool2d", {0}},
                                                    {"random_bits", {3}},
                                                    {"random_uniform", {3}},
                                                    {"random_normal", {3}},
                                                    {"cross_entropy", {4, 5}},
                                                    {"nll_loss", {4, 5}},
                                                    {"unwindow", {6}},
                                                    {"gather", {4, 5}},
                                                    {"scatter_add", {4, 5, 4}},
                                                    {"conv_transpose2d", {0, 7}},
                                                    {"unfold", {0}},
                                                    {"interpolate", {0}},
                                                    {"adaptive_avg_pool", {0}},
                                                    {"adaptive_max_pool", {0}},
                                                    {"pad_reflect", {0}},
                                                    {"pad_circular", {0}},
                                                    {"lp_pool2d", {0}},
                                                    {"cross_entropy", {4, 5, 2}},
                                                    {"cross_entropy", {4, 4}},
                                                    {"binary_cross_entropy", {4, 4}},
                                                    {"dropout", {4, 3}},
                                                    {"triplet_margin_loss", {4, 4, 4}},
                                                    {"group_norm", {0, 2, 2}},
                                                    {"local_response_norm", {0}},
                                                    {"rotary_embedding", {0, 7, 7}}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    v1::Node* node = graph->add_nodes();
    node->set_op("input");
    node->set_dtype(inputs[i].dtype);
    (*node->mutable_attributes())["index"].set_i(static_cast<int64_t>(i));
    v1::Shape* shape = (*node->mutable_attributes())["shape"].mutable_shape();
    for (int64_t size : inputs[i].shape) shape->add_dims()->set_size(size);
  }
  for (int i = 0; i < 3; ++i) {
    const Call& call = calls[Below(random, calls.size())];
    AddAccepted(graph, [&] { return CallNode(random, *graph, call); });
  }
}

void AddResults(Random& random, v1::Graph* graph) {
  graph->clear_outputs();
  for (size_t i = 0, n = 1 + Below(random, 3); i < n; ++i) {
    graph->add_outputs(graph->nodes_size() - 1 - Below(random, std::min(graph->nodes_size(), 4)));
  }
  for (int i = 0; i < graph->nodes_size() && OneIn(random, 4); ++i) {
    if (graph->nodes(i).op() != "input") continue;
    v1::Update* update = graph->add_updates();
    update->set_input(i);
    update->set_value(i);
  }
}

void MutateAttribute(Random& random, const v1::Graph& graph, v1::Node* node) {
  if (node->attributes().empty() || OneIn(random, 8)) {
    constexpr std::array<const char*, 5> kNames = {"axes", "shape", "value", "index", "bogus"};
    (*node->mutable_attributes())[kNames[Below(random, kNames.size())]].set_i(AnyInt(random));
    return;
  }
  v1::Attribute& value = node->mutable_attributes()->begin()->second;
  if (OneIn(random, 4)) {
    SetValue(random, graph, static_cast<Type>(Below(random, 7)), &value);
  } else if (value.has_ints() && value.ints().values_size() > 0) {
    value.mutable_ints()->set_values(Below(random, value.ints().values_size()), AnyInt(random));
  } else if (value.has_shape() && value.shape().dims_size() > 0) {
    value.mutable_shape()
        ->mutable_dims(Below(random, value.shape().dims_size()))
        ->set_size(AnyInt(random));
  } else {
    value.set_i(AnyInt(random));
  }
}

void MutateNode(Random& random, const v1::Graph& graph, v1::Node* node) {
  absl::Span<const ops::OpDef> all = ops::AllOps();
  switch (Below(random, 6)) {
    case 0:
      node->set_op(std::string(all[Below(random, all.size())].name));
      break;
    case 1:
      node->set_dtype(static_cast<v1::DType>(Below(random, 18)));
      break;
    case 2:
      node->add_operands(Below(random, graph.nodes_size() + 1));
      break;
    case 3:
      if (node->operands_size() > 0) {
        node->set_operands(Below(random, node->operands_size()),
                           Below(random, graph.nodes_size() + 1));
      }
      break;
    default:
      MutateAttribute(random, graph, node);
      break;
  }
}

}  // namespace

v1::Graph RandomGraph(Random& random, int nodes_max) {
  v1::Graph graph;
  graph.set_op_set_version(Below(random, 2));
  if (OneIn(random, 4)) {
    v1::Variable* variable = graph.add_variables();
    variable->set_name("n");
    variable->set_min(1);
    variable->set_max(4);
  }
  if (OneIn(random, 4)) graph.set_float32_matmul_precision(v1::MATMUL_PRECISION_HIGH);
  if (OneIn(random, 4)) AddSpecialNodes(random, &graph);
  for (size_t i = 0, n = 1 + Below(random, nodes_max); i < n || graph.nodes_size() == 0; ++i) {
    AddAccepted(&graph, [&] { return RandomNode(random, graph); });
  }
  AddResults(random, &graph);
  return graph;
}

void MutateGraph(Random& random, v1::Graph* graph) {
  for (size_t i = 0, n = 1 + Below(random, 3); i < n; ++i) {
    int node = static_cast<int>(Below(random, graph->nodes_size()));
    switch (Below(random, 8)) {
      case 0:
        graph->mutable_nodes()->SwapElements(node, Below(random, graph->nodes_size()));
        break;
      case 1:
        graph->add_outputs(Below(random, graph->nodes_size() + 2));
        break;
      case 2: {
        v1::Update* update = graph->add_updates();
        update->set_input(Below(random, graph->nodes_size() + 1));
        update->set_value(Below(random, graph->nodes_size() + 1));
        break;
      }
      default:
        MutateNode(random, *graph, graph->mutable_nodes(node));
        break;
    }
  }
}

}  // namespace kiln::fuzz
