#include "compiler/shard/stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/walk.h"
#include "compiler/shard/place.h"
#include "compiler/shard/rules.h"
#include "compiler/shard/send_order.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;
using NodeMap = absl::flat_hash_map<const Node*, const Node*>;
using BufferKind = Buffer::Kind;

// Fetches copy whole words.
int64_t InWords(int64_t bytes) {
  constexpr int64_t kWord = 4;
  return (bytes + kWord - 1) / kWord * kWord;
}

class StageSplitter {
 public:
  explicit StageSplitter(const graph::Graph& graph)
      : graph_(graph),
        stages_(*graph.sharding->stages),
        homes_(*graph::FindHomes(graph)),
        order_(OrderSends(graph, homes_)),
        devices_(static_cast<int>(graph::NumDevices(graph.sharding->mesh))) {
    program_.mesh = graph.sharding->mesh;
    program_.groups = {{0}};
    program_.segments.resize(static_cast<size_t>(order_.slots) * devices_);
    writes_.resize(program_.segments.size());
  }

  Program Run() && {
    AddInputs();
    AddResults();
    Meet();
    for (const Node* node : ir::TopologicalOrder(graph::Roots(graph_))) {
      if (IsTransfer(homes_, node)) Send(node);
    }
    // From the last segment to the first: each one requests the values that it reads from earlier
    // ones.
    for (int i = static_cast<int>(program_.segments.size()); i-- > 0;) Build(i);
    program_.own_bytes = PlaceBuffers(BufferKind::kOwn, &program_.buffers);
    program_.published_bytes = PlaceBuffers(BufferKind::kPublished, &program_.buffers);
    // As much work as building it.
    KILN_VALIDATE(program_, 1);
    return std::move(program_);
  }

 private:
  // A value that a segment stores.
  struct Write {
    const Node* node = nullptr;
    int buffer = 0;
  };

  int SegmentOf(int slot, int device) const { return slot * devices_ + device; }
  int LastSegment() const { return static_cast<int>(program_.segments.size()) - 1; }
  int HomeOf(const Node* node) const { return homes_.at(node); }

  int AddBuffer(Buffer buffer) {
    program_.buffers.push_back(buffer);
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  void AddLayout(std::string_view what, ir::DType dtype, const ir::Shape& shape, int device) {
    StrAppend(&program_.layouts, what, " ", ir::TypeText(dtype, shape), " on ", device, "\n");
  }

  void AddInputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const graph::Input& input = graph_.inputs[i];
      const int device = stages_.inputs[i];
      AddBuffer({.kind = BufferKind::kInput,
                 .index = static_cast<int>(i),
                 .device = device,
                 .bytes = ir::BytesOf(input.dtype, input.shape)});
      AddLayout(StrCat("input ", i), input.dtype, input.shape, device);
    }
  }

  void AddResults() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Node* node = graph_.outputs[i];
      AddLayout(StrCat("output ", i), node->dtype(), node->shape(), stages_.outputs[i]);
      AddResult(node, BufferKind::kOutput, static_cast<int>(i), stages_.outputs[i]);
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      const auto& [input, node] = graph_.updates[i];
      AddLayout(StrCat("update ", input), node->dtype(), node->shape(), stages_.inputs[input]);
      AddResult(node, BufferKind::kUpdate, static_cast<int>(i), stages_.inputs[input]);
    }
  }

  void AddResult(const Node* node, BufferKind kind, int index, int device) {
    const int buffer =
        AddBuffer({.kind = kind, .index = index, .device = device, .bytes = ir::BytesOf(node)});
    node = Behind(node);
    if (node->op() == Op::kInput) {
      // The inputs' buffers are the first ones.
      program_.copies.push_back({static_cast<int>(node->attr<ir::InputAttr>().index), buffer});
      return;
    }
    if (HomeOf(node) == graph::kAnywhere) {
      writes_[SegmentOf(0, device)].push_back({node, buffer});
      return;
    }
    // A sent value is first fetched to a buffer of its own, whose size is in words, and copied.
    const auto known = stored_.find(node);
    if (known != stored_.end()) {
      program_.copies.push_back({known->second, buffer});
      return;
    }
    if (!IsTransfer(homes_, node)) stored_[node] = buffer;
    writes_[SegmentOf(order_.Of(node), device)].push_back({node, buffer});
  }

  // Returns the value that a send within one device is equal to.
  const Node* Behind(const Node* node) const {
    while (node->op() == Op::kSend && !IsTransfer(homes_, node)) node = node->operand(0);
    return node;
  }

  // Adds barriers between all slots, and one after the last, so that no device publishes in the
  // next run what others still fetch.
  void Meet() {
    for (int slot = 1; slot < order_.slots; ++slot) {
      program_.meetings.push_back({SegmentOf(slot, 0), 0});
    }
    if (order_.slots > 1) program_.meetings.push_back({LastSegment() + 1, 0});
  }

  void Send(const Node* node) {
    const Node* value = Behind(node->operand(0));
    const int from = HomeOf(value);
    const int to = HomeOf(node);
    const int arrival = order_.Of(node);
    KILN_CHECK_NE(from, to);
    KILN_CHECK(arrival >= 1 && arrival < order_.slots) << "arrives in slot " << arrival;
    const int published = Publish(value, from, arrival - 1);
    const int64_t bytes = InWords(ir::BytesOf(node));
    const int own = AddBuffer({.kind = BufferKind::kOwn,
                               .device = to,
                               .bytes = bytes,
                               .first = SegmentOf(arrival, to),
                               .last = SegmentOf(arrival, to)});
    stored_[node] = own;
    const Access source = {.buffer = published, .bytes = bytes, .member = from};
    if (bytes > 0) {
      program_.segments[SegmentOf(arrival, to)].fetches.push_back(
          {source, {.buffer = own, .bytes = bytes}});
    }
    program_.transfers.push_back({.segment = SegmentOf(arrival, to),
                                  .name = StrCat("send ", from, " to ", to),
                                  .bytes = ir::BytesOf(node),
                                  .what = ir::TypeText(node->dtype(), node->shape())});
  }

  // Publishes the value in this slot; several devices may fetch it.
  int Publish(const Node* value, int device, int slot) {
    const auto [known, is_new] = published_.try_emplace({value, slot}, -1);
    if (is_new) {
      known->second = AddBuffer({.kind = BufferKind::kPublished,
                                 .device = device,
                                 .bytes = InWords(ir::BytesOf(value)),
                                 .first = SegmentOf(slot, 0),
                                 .last = SegmentOf(slot + 2, 0) - 1});
      writes_[SegmentOf(slot, device)].push_back({value, known->second});
    }
    return known->second;
  }

  // Returns whether later segments recompute it from its operands.
  bool IsMadeAgain(const Node* node) const {
    return HomeOf(node) == graph::kAnywhere ||
           (RuleOf(node->op()) == RuleKind::kMovement && !IsTransfer(homes_, node));
  }

  // Returns the buffer of a value that this or an earlier segment stores; makes it store the value
  // if needed.
  int Stored(const Node* node, int reader) {
    const auto [found, is_new] = stored_.try_emplace(node, -1);
    if (is_new) {
      const int writer = SegmentOf(order_.Of(node), HomeOf(node));
      found->second = AddBuffer({.kind = BufferKind::kOwn,
                                 .device = HomeOf(node),
                                 .bytes = ir::BytesOf(node),
                                 .first = writer});
      writes_[writer].push_back({node, found->second});
    }
    Buffer& buffer = program_.buffers[found->second];
    buffer.last = std::max(buffer.last, reader);
    return found->second;
  }

  const Node* Read(Segment& segment, int buffer, const Node* node) {
    const auto index = static_cast<int64_t>(segment.inputs.size());
    segment.inputs.push_back({.buffer = buffer, .bytes = ir::BytesOf(node)});
    segment.graph.inputs.push_back({node->dtype(), node->shape()});
    return graph_.context->Get(Op::kInput, node->dtype(), node->shape(), {}, ir::InputAttr{index});
  }

  // Returns a value that this segment reads, or null if it computes the value.
  const Node* Taken(Segment& segment, int number, const Node* node) {
    if (node->op() == Op::kInput) {
      return Read(segment, static_cast<int>(node->attr<ir::InputAttr>().index), node);
    }
    if (IsTransfer(homes_, node)) return Read(segment, Stored(node, number), node);
    if (IsMadeAgain(node)) return nullptr;
    if (SegmentOf(order_.Of(node), HomeOf(node)) == number) return nullptr;
    return Read(segment, Stored(node, number), node);
  }

  // Iterative, since graphs may be deep.
  const Node* Rebuild(Segment& segment, int number, const Node* root, NodeMap& became) {
    std::vector<const Node*> stack = {root};
    absl::flat_hash_set<const Node*> visiting;
    while (!stack.empty()) {
      const Node* node = stack.back();
      if (became.contains(node)) {
        stack.pop_back();
        continue;
      }
      if (visiting.insert(node).second) {
        if (const Node* taken = Taken(segment, number, node)) {
          became[node] = taken;
          stack.pop_back();
          continue;
        }
        stack.insert(stack.end(), node->operands().begin(), node->operands().end());
        continue;
      }
      became[node] = Rebuilt(segment, node, became);
      stack.pop_back();
    }
    return became.at(root);
  }

  const Node* Rebuilt(Segment& segment, const Node* node, const NodeMap& became) {
    if (node->op() == Op::kSend) return became.at(node->operand(0));
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(became.at(operand));
    const Node* rebuilt = graph_.context->WithOperands(node, std::move(operands));
    const auto source = graph_.sources.find(node);
    if (source != graph_.sources.end()) {
      segment.graph.sources.try_emplace(rebuilt, source->second);
    }
    return rebuilt;
  }

  void Build(int number) {
    Segment& segment = program_.segments[number];
    segment.graph.context = graph_.context;
    segment.device = number % devices_;
    NodeMap became;
    for (const Write& write : writes_[number]) {
      const Node* value = Rebuild(segment, number, write.node, became);
      segment.graph.outputs.push_back(value);
      segment.results.push_back({.buffer = write.buffer, .bytes = ir::BytesOf(value)});
    }
  }

  const graph::Graph& graph_;
  const graph::Stages& stages_;
  const graph::Homes homes_;
  const SendOrder order_;
  const int devices_;
  Program program_;
  std::vector<std::vector<Write>> writes_;        // by segment
  absl::flat_hash_map<const Node*, int> stored_;  // the buffer of each stored value
  absl::flat_hash_map<std::pair<const Node*, int>, int> published_;  // by value and slot
};

}  // namespace

Program SplitStages(const graph::Graph& graph) { return StageSplitter(graph).Run(); }

}  // namespace kiln::shard
