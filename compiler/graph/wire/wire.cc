#include "compiler/graph/wire/wire.h"

#include <utility>

#include "compiler/graph/error.h"
#include "compiler/graph/verify.h"
#include "compiler/graph/wire/label.h"
#include "compiler/graph/wire/node.h"
#include "compiler/graph/wire/order.h"
#include "compiler/graph/wire/sharding.h"
#include "compiler/graph/wire/variables.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_def.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {
namespace {

// Decodes one message, in the order of its fields.
class Decoder {
 public:
  Decoder(const v1::Graph& proto, const Bindings& bindings, const Limits& limits,
          ops::FormSizes* sizes)
      : proto_(proto),
        bindings_(bindings),
        limits_(limits),
        sizes_(sizes),
        builder_(*context_, sizes) {
    graph_.context = context_;
  }

  absl::StatusOr<Graph> Decode() {
    absl::Status status = CheckHead();
    if (status.ok()) status = ReadNodes();
    if (status.ok()) status = ReadInputs();
    if (status.ok()) status = ReadOutputs();
    if (status.ok()) status = ReadUpdates();
    if (status.ok()) status = ReadSharding();
    if (status.ok()) status = Verify(graph_);
    if (!status.ok()) return status;
    return std::move(graph_);
  }

 private:
  absl::Status CheckHead() {
    if (proto_.op_set_version() > static_cast<uint32_t>(ops::kOpSetVersion)) {
      return MakeError("VERSION", {},
                       StrCat("the client's op set has version ", proto_.op_set_version(),
                              ", newer than this daemon's ", ops::kOpSetVersion,
                              "; update the daemon or use an older client"),
                       absl::StatusCode::kFailedPrecondition);
    }
    if (absl::Status precision = ReadPrecision(); !precision.ok()) return precision;
    // Sizes are checked first: nothing is built for a graph that is too large.
    int64_t results = int64_t{proto_.outputs_size()} + proto_.updates_size();
    if (proto_.nodes_size() > limits_.nodes_max || results > limits_.nodes_max) {
      return MakeError("TOO_LARGE", {{"limit", StrCat(limits_.nodes_max)}},
                       StrCat("the graph has ", proto_.nodes_size(), " nodes and ", results,
                              " outputs and updates; the limit is ", limits_.nodes_max, " each"));
    }
    if (results == 0) {
      return MakeError("OUTPUT", {}, "the graph has neither outputs nor updates");
    }
    absl::StatusOr<std::vector<Variable>> variables = Variables(proto_);
    if (!variables.ok()) return variables.status();
    return CheckBindings(*variables, bindings_);
  }

  absl::Status ReadPrecision() {
    switch (proto_.float32_matmul_precision()) {
      case v1::MATMUL_PRECISION_UNSPECIFIED:
      case v1::MATMUL_PRECISION_HIGHEST:
        return absl::OkStatus();
      case v1::MATMUL_PRECISION_HIGH:
        graph_.float32_matmul_precision = MatmulPrecision::kHigh;
        return absl::OkStatus();
      default:
        return MakeError("PRECISION", {},
                         StrCat("the graph's float32_matmul_precision is ",
                                static_cast<int>(proto_.float32_matmul_precision()),
                                "; this daemon knows MATMUL_PRECISION_HIGHEST (1) and "
                                "MATMUL_PRECISION_HIGH (2)"));
    }
  }

  absl::Status ReadNodes() {
    nodes_.reserve(proto_.nodes_size());
    for (int i = 0; i < proto_.nodes_size(); ++i) {
      absl::Status order = CheckOperandOrder(proto_, i);
      if (!order.ok()) return order;
      if (sizes_ != nullptr) sizes_->BeginNode(i);
      absl::StatusOr<const ir::Node*> node =
          BuildNode(proto_, i, nodes_, bindings_, limits_, builder_);
      if (!node.ok()) return node.status();
      nodes_.push_back(*node);
      if (!proto_.nodes(i).source().empty()) {
        // Equal nodes are one node; it keeps the source line of the first.
        graph_.sources.try_emplace(*node, proto_.nodes(i).source());
      }
      if (static_cast<int64_t>(context_->size()) > limits_.primitives_max) {
        return NodeError(proto_, i, "TOO_LARGE",
                         StrCat("the graph up to this node expands to more than ",
                                limits_.primitives_max, " primitives, which is the limit"));
      }
      if (absl::Status grown = Grow(); !grown.ok()) return grown;
    }
    return absl::OkStatus();
  }

  absl::Status Grow() {
    constexpr size_t kStep = 1024;
    // The budget is checked only every kStep nodes.
    if (!limits_.grow || context_->size() < reported_ + kStep) return absl::OkStatus();
    reported_ = context_->size();
    return limits_.grow(static_cast<int64_t>(reported_));
  }

  // The attribute "index" of the nodes "input" must cover 0, 1, 2, … without gaps, in any order.
  // input_nodes_ maps each index to the node that declared it.
  absl::Status ReadInputs() {
    int count = 0;
    for (int i = 0; i < proto_.nodes_size(); ++i) count += IsInput(i) ? 1 : 0;
    input_nodes_.assign(count, -1);
    graph_.inputs.resize(count);
    for (int i = 0; i < proto_.nodes_size(); ++i) {
      if (!IsInput(i)) continue;
      int64_t index = nodes_[i]->attr<ir::InputAttr>().index;
      // Negative indices were refused when the nodes were built.
      if (index >= count) {
        return NodeError(proto_, i, "INPUT",
                         StrCat("its index is ", index, ", but the graph has ", count,
                                " inputs; indices must count from 0 without gaps"));
      }
      if (input_nodes_[index] >= 0) {
        return NodeError(proto_, i, "INPUT",
                         StrCat("its index ", index, " is already used by ",
                                Label(proto_, input_nodes_[index]), " already"));
      }
      input_nodes_[index] = i;
      graph_.inputs[index] = {nodes_[i]->dtype(), nodes_[i]->shape()};
      absl::Status size = CheckBytes(i, "an input");
      if (!size.ok()) return size;
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutputs() {
    for (int i = 0; i < proto_.outputs_size(); ++i) {
      uint32_t node = proto_.outputs(i);
      if (node >= nodes_.size()) return NoSuchNode("OUTPUT", StrCat("output ", i), node);
      absl::Status size = CheckBytes(static_cast<int>(node), StrCat("output ", i));
      if (!size.ok()) return size;
      graph_.outputs.push_back(nodes_[node]);
    }
    return absl::OkStatus();
  }

  absl::Status ReadUpdates() {
    std::vector<bool> updated(input_nodes_.size(), false);
    for (int i = 0; i < proto_.updates_size(); ++i) {
      const v1::Update& update = proto_.updates(i);
      std::string name = StrCat("update ", i);
      if (update.input() >= nodes_.size()) return NoSuchNode("UPDATE", name, update.input());
      if (update.value() >= nodes_.size()) return NoSuchNode("UPDATE", name, update.value());
      absl::Status legal = CheckUpdate(name, update);
      if (!legal.ok()) return legal;
      int index = static_cast<int>(nodes_[update.input()]->attr<ir::InputAttr>().index);
      if (updated[index]) {
        return NodeError(proto_, static_cast<int>(update.input()), "UPDATE",
                         StrCat(name, " is the second of this input"));
      }
      updated[index] = true;
      graph_.updates.push_back({index, nodes_[update.value()]});
    }
    return absl::OkStatus();
  }

  absl::Status ReadSharding() {
    auto sharding = graph::ReadSharding(proto_, graph_, nodes_);
    if (sharding.ok()) graph_.sharding = *std::move(sharding);
    return sharding.status();
  }

  absl::Status CheckUpdate(std::string_view name, const v1::Update& update) {
    int target = static_cast<int>(update.input());
    int source = static_cast<int>(update.value());
    if (!IsInput(target)) {
      return NodeError(proto_, target, "UPDATE",
                       StrCat(name, " replaces it, but only a node \"input\" can be replaced"));
    }
    const ir::Node* input = nodes_[target];
    const ir::Node* value = nodes_[source];
    if (input->shape() == value->shape() && input->dtype() == value->dtype()) {
      return absl::OkStatus();
    }
    bool shapes_agree = input->shape() == value->shape();
    return NodeError(
        proto_, target, shapes_agree ? "DTYPE_MISMATCH" : "SHAPE_MISMATCH",
        StrCat(name, " replaces it, ", ir::TypeText(input->dtype(), input->shape()), ", by ",
               Label(proto_, source), ", ", ir::TypeText(value->dtype(), value->shape()),
               "; both must have one dtype and shape"));
  }

  absl::Status NoSuchNode(std::string_view reason, std::string_view what, uint32_t node) {
    return MakeError(
        reason, {{"node", StrCat(node)}},
        StrCat(what, " names node ", node, ", but the graph has ", nodes_.size(), " nodes"));
  }

  // Inputs and results must fit in memory, unlike intermediate values.
  absl::Status CheckBytes(int index, std::string_view what) {
    const ir::Node* node = nodes_[index];
    int64_t elements = ir::NumElements(node->shape());
    if (elements <= limits_.bytes_max / ir::SizeOf(node->dtype())) return absl::OkStatus();
    return NodeError(proto_, index, "TOO_LARGE",
                     StrCat(what, " of ", ir::TypeText(node->dtype(), node->shape()),
                            " takes more than ", limits_.bytes_max, " bytes, the limit"));
  }

  bool IsInput(int index) const { return proto_.nodes(index).op() == "input"; }

  const v1::Graph& proto_;
  const Bindings& bindings_;
  const Limits& limits_;
  ops::FormSizes* const sizes_;
  std::shared_ptr<ir::Context> context_ = std::make_shared<ir::Context>();
  ops::Builder builder_;
  std::vector<const ir::Node*> nodes_;  // by the wire's index
  size_t reported_ = 0;                 // primitives
  std::vector<int> input_nodes_;        // the wire's index of an input, by InputAttr::index
  Graph graph_;
};

}  // namespace

absl::StatusOr<Graph> FromProto(const v1::Graph& proto, const Bindings& bindings,
                                const Limits& limits, ops::FormSizes* sizes) {
  return Decoder(proto, bindings, limits, sizes).Decode();
}

}  // namespace kiln::graph
