#include "compiler/shard/segments.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/shard/levels.h"
#include "compiler/shard/meetings.h"
#include "compiler/shard/place.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;
using NodeMap = absl::flat_hash_map<const Node*, const Node*>;

void AppendLayout(const Mesh& mesh, std::string_view what, const Spec& spec, ir::DType dtype,
                  const ir::Shape& shape, std::string* text) {
  StrAppend(text, what, " ", ir::TypeText(dtype, shape), " ", graph::Print(mesh, spec), " ",
            ir::TypeText(dtype, graph::LocalShape(mesh, spec, shape)), "\n");
}

std::string LayoutsText(const graph::Graph& graph, const Layouts& layouts) {
  std::string text;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::Input& input = graph.inputs[i];
    AppendLayout(layouts.mesh, StrCat("input ", i), graph.sharding->inputs[i], input.dtype,
                 input.shape, &text);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Node* node = graph.outputs[i];
    AppendLayout(layouts.mesh, StrCat("output ", i), layouts.outputs[i], node->dtype(),
                 node->shape(), &text);
  }
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const Node* node = graph.updates[i].value;
    AppendLayout(layouts.mesh, StrCat("update ", graph.updates[i].input), layouts.updates[i],
                 node->dtype(), node->shape(), &text);
  }
  return text + graph.sharding->padding;
}

class Splitter {
 public:
  Splitter(const graph::Graph& graph, const Layouts& layouts, const LocalGraph& local)
      : local_(local),
        levels_(local),
        builder_(*local.context),
        writes_(levels_.segments()),
        published_of_(local.collectives.size(), -1) {
    program_.mesh = layouts.mesh;
    program_.layouts = LayoutsText(graph, layouts);
    program_.segments.resize(levels_.segments());
    end_ = levels_.segments();
  }

  Program Run() && {
    AddInputs();
    AddResults();
    AddFetches();
    for (int level = 0; level < end_; ++level) {
      for (const int i : levels_.collectives()[level]) Publish(level, i);
    }
    // From the last segment to the first: each one requests the values that it reads from earlier
    // ones.
    for (int level = end_; level-- > 0;) Build(level);
    PlanMeetings(&program_);
    program_.own_bytes = PlaceBuffers(Buffer::Kind::kOwn, &program_.buffers);
    program_.published_bytes = PlaceBuffers(Buffer::Kind::kPublished, &program_.buffers);
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

  int AddBuffer(Buffer buffer) {
    program_.buffers.push_back(buffer);
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  void AddInputs() {
    for (size_t i = 0; i < local_.inputs.size(); ++i) {
      const graph::Input& input = local_.inputs[i];
      const bool is_place = static_cast<int>(i) == local_.place();
      AddBuffer({.kind = is_place ? Buffer::Kind::kPlace : Buffer::Kind::kInput,
                 .index = is_place ? 0 : static_cast<int>(i),
                 .bytes = ir::BytesOf(input.dtype, input.shape)});
    }
  }

  void AddResults() {
    for (size_t i = 0; i < local_.outputs.size(); ++i) {
      AddResult(local_.outputs[i], Buffer::Kind::kOutput, static_cast<int>(i));
    }
    for (size_t i = 0; i < local_.updates.size(); ++i) {
      AddResult(local_.updates[i], Buffer::Kind::kUpdate, static_cast<int>(i));
    }
  }

  void AddResult(const Node* node, Buffer::Kind kind, int index) {
    const int buffer = AddBuffer({.kind = kind, .index = index, .bytes = ir::BytesOf(node)});
    const bool is_input = node->op() == Op::kInput && levels_.CollectiveOf(node) < 0;
    if (is_input) {
      // The inputs' buffers are the first ones.
      program_.copies.push_back({static_cast<int>(node->attr<ir::InputAttr>().index), buffer});
      return;
    }
    // A fetch writes directly to the output's buffer, even if the output is a reshape of the
    // result.
    const Node* value = node;
    while (value->op() == Op::kReshape) value = value->operands()[0];
    const bool is_fetched = IsFetchedResult(value);
    if (!is_fetched) value = node;
    const auto [stored, is_new] = stored_.try_emplace(value, buffer);
    if (!is_new) {
      program_.copies.push_back({stored->second, buffer});
      return;
    }
    if (!is_fetched) writes_[levels_.Of(node)].push_back({node, buffer});
  }

  bool IsFetchedResult(const Node* node) const {
    const int collective = levels_.CollectiveOf(node);
    return collective >= 0 && IsFetched(local_.collectives[collective]);
  }

  // Adds buffers for fetched results that the program does not return.
  void AddFetches() {
    for (int level = 0; level < end_; ++level) {
      for (const int i : levels_.collectives()[level]) {
        const Node* result = local_.collectives[i].result;
        if (!IsFetched(local_.collectives[i]) || stored_.contains(result)) continue;
        stored_[result] = AddBuffer({.kind = Buffer::Kind::kOwn,
                                     .bytes = ir::BytesOf(result),
                                     .first = level + 1,
                                     .last = level + 1});
      }
    }
  }

  void Publish(int level, int collective) {
    const Collective& what = local_.collectives[collective];
    const Node* node = Published(builder_, what);
    const auto [known, is_new] = published_.try_emplace(node, -1);
    if (is_new) {
      known->second = AddBuffer({.kind = Buffer::Kind::kPublished,
                                 .bytes = ir::BytesOf(node),
                                 .first = level,
                                 .last = level + 1});
      // A value that already has another buffer, or is an input, is copied to this one.
      const bool is_input = node->op() == Op::kInput && levels_.CollectiveOf(node) < 0;
      const bool is_elsewhere = is_input || stored_.contains(node);
      const Node* written = is_elsewhere ? builder_.Contiguous(node) : node;
      writes_[level].push_back({written, known->second});
      stored_.try_emplace(written, known->second);
    }
    KILN_CHECK_LT(published_of_[collective], 0) << "collective " << collective << " twice";
    published_of_[collective] = known->second;
    program_.transfers.push_back(
        {.segment = level + 1,
         .name = Name(what),
         .group = GroupOf(what.group),
         .bytes = (what.devices - 1) * PartBytes(what),
         .what = ir::TypeText(what.operand->dtype(), what.operand->shape())});
  }

  int GroupOf(const std::vector<int>& axes) {
    const auto found = std::find(program_.groups.begin(), program_.groups.end(), axes);
    if (found != program_.groups.end()) return static_cast<int>(found - program_.groups.begin());
    program_.groups.push_back(axes);
    return static_cast<int>(program_.groups.size()) - 1;
  }

  // Returns the buffer of a value that an earlier segment stores; makes it store the value if
  // needed.
  int Stored(const Node* node, int reader) {
    const int level = levels_.Of(node);
    const auto [found, is_new] = stored_.try_emplace(node, -1);
    if (is_new) {
      found->second =
          AddBuffer({.kind = Buffer::Kind::kOwn, .bytes = ir::BytesOf(node), .first = level});
      writes_[level].push_back({node, found->second});
    }
    Buffer& buffer = program_.buffers[found->second];
    buffer.last = std::max(buffer.last, reader);
    return found->second;
  }

  const Node* AddInput(Segment& segment, Access access, ir::DType dtype, const ir::Shape& shape) {
    const auto index = static_cast<int64_t>(segment.inputs.size());
    segment.inputs.push_back(access);
    segment.graph.inputs.push_back({dtype, shape});
    return builder_.Input(index, dtype, shape);
  }

  const Node* Whole(Segment& segment, int buffer, const Node* node) {
    return AddInput(segment, {.buffer = buffer, .bytes = ir::BytesOf(node)}, node->dtype(),
                    node->shape());
  }

  // Returns the range that the device reads from one member of its group.
  Access PartOf(int i, int64_t member) {
    const Collective& collective = local_.collectives[i];
    KILN_CHECK_GE(published_of_[i], 0) << "collective " << i << " is not published";
    KILN_CHECK_LT(member, collective.devices);
    const int64_t bytes = PartBytes(collective);
    return {.buffer = published_of_[i],
            .bytes = bytes,
            .member = static_cast<int>(member),
            .group = GroupOf(collective.group),
            .stride = collective.is_cut() ? bytes : 0};
  }

  // Builds the result from the parts that the device reads from its group.
  const Node* Receive(Segment& segment, int i) {
    const Collective& collective = local_.collectives[i];
    std::vector<const Node*> parts;
    for (int64_t member = 0; member < collective.devices; ++member) {
      parts.push_back(
          AddInput(segment, PartOf(i, member), collective.operand->dtype(), PartShape(collective)));
    }
    return Received(builder_, collective, parts);
  }

  void Fetch(Segment& segment, int i) {
    const Collective& collective = local_.collectives[i];
    for (int64_t member = 0; member < collective.devices; ++member) {
      const Access source = PartOf(i, member);
      segment.fetches.push_back({source,
                                 {.buffer = stored_.at(collective.result),
                                  .offset = member * source.bytes,
                                  .bytes = source.bytes}});
    }
  }

  // Returns a value that this segment reads from elsewhere, or null if it computes the value.
  const Node* Taken(Segment& segment, int level, const Node* node) {
    const int collective = levels_.CollectiveOf(node);
    if (node->op() == Op::kInput && collective < 0) {
      return Whole(segment, static_cast<int>(node->attr<ir::InputAttr>().index), node);
    }
    // Nodes that were added for publishing have no level and belong to this segment.
    const bool is_own = !levels_.Has(node) || levels_.Of(node) == level;
    if (IsFetchedResult(node)) return Whole(segment, Stored(node, level), node);
    if (is_own) return collective < 0 ? nullptr : Receive(segment, collective);
    if (levels_.IsMadeAgain(node)) return nullptr;
    return Whole(segment, Stored(node, level), node);
  }

  // Iterative, since graphs may be deep.
  const Node* Rebuild(Segment& segment, int level, const Node* root, NodeMap& became) {
    std::vector<const Node*> stack = {root};
    while (!stack.empty()) {
      const Node* node = stack.back();
      if (became.contains(node)) {
        stack.pop_back();
        continue;
      }
      if (visiting_.insert(node).second) {
        if (const Node* taken = Taken(segment, level, node)) {
          became[node] = taken;
          stack.pop_back();
          continue;
        }
        stack.insert(stack.end(), node->operands().begin(), node->operands().end());
        continue;
      }
      std::vector<const Node*> operands;
      for (const Node* operand : node->operands()) operands.push_back(became.at(operand));
      became[node] = builder_.context().WithOperands(node, std::move(operands));
      const auto source = local_.sources.find(node);
      if (source != local_.sources.end()) {
        segment.graph.sources.try_emplace(became[node], source->second);
      }
      stack.pop_back();
    }
    return became.at(root);
  }

  void Build(int level) {
    Segment& segment = program_.segments[level];
    segment.graph.context = local_.context;
    if (level > 0) {
      for (const int i : levels_.collectives()[level - 1]) {
        if (IsFetched(local_.collectives[i])) Fetch(segment, i);
      }
    }
    visiting_.clear();
    NodeMap became;
    for (const Write& write : writes_[level]) {
      const Node* value = Rebuild(segment, level, write.node, became);
      segment.graph.outputs.push_back(value);
      segment.results.push_back({.buffer = write.buffer, .bytes = ir::BytesOf(value)});
    }
  }

  const LocalGraph& local_;
  Levels levels_;
  ops::Builder builder_;
  Program program_;
  int end_ = 0;
  std::vector<std::vector<Write>> writes_;           // by segment
  absl::flat_hash_map<const Node*, int> stored_;     // the buffer of each stored value
  absl::flat_hash_map<const Node*, int> published_;  // the buffer of each published value
  std::vector<int> published_of_;                    // by collective
  absl::flat_hash_set<const Node*> visiting_;
};

}  // namespace

Program Split(const graph::Graph& graph, const Layouts& layouts, const LocalGraph& local) {
  return Splitter(graph, layouts, local).Run();
}

}  // namespace kiln::shard
