// Runs a graph. Unordered nodes run in an unpredictable order, and must not access the same bytes
// if one of them writes.
#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

class GraphRun {
 public:
  GraphRun(Context& context, const std::vector<GraphNode>& nodes, uint64_t seed,
           const std::map<CUgraphNode, std::shared_ptr<Completion>>& events)
      : context_(context), nodes_(nodes), events_(events), random_(seed), accesses_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) index_[nodes[i].handle] = i;
  }

  CUresult Run() {
    const size_t count = nodes_.size();
    std::vector<std::vector<size_t>> followers(count);
    std::vector<size_t> waits_for(count);
    std::vector<size_t> ready;
    before_.assign(count, std::vector<uint64_t>((count + 63) / 64));
    for (size_t i = 0; i < count; ++i) {
      waits_for[i] = nodes_[i].dependencies.size();
      for (CUgraphNode dependency : nodes_[i].dependencies)
        followers[index_.at(dependency)].push_back(i);
      if (waits_for[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const size_t pick = random_() % ready.size();
      const size_t i = ready[pick];
      ready[pick] = ready.back();
      ready.pop_back();
      if (const CUresult result = RunNode(i); result != CUDA_SUCCESS) return result;
      for (size_t follower : followers[i]) {
        Order(i, follower);
        if (--waits_for[follower] == 0) ready.push_back(follower);
      }
    }
    return FindConflict();
  }

 private:
  // Orders `first`, and everything before it, before `second`.
  void Order(size_t first, size_t second) {
    before_[second][first / 64] |= uint64_t{1} << first % 64;
    for (size_t i = 0; i < before_[first].size(); ++i) before_[second][i] |= before_[first][i];
  }
  bool IsBefore(size_t first, size_t second) const {
    return (before_[second][first / 64] >> first % 64 & 1) != 0;
  }

  CUresult RunNode(size_t index) {
    const GraphNode& node = nodes_[index];
    switch (node.kind) {
      case GraphNode::Kind::kKernel:
        return RunKernel(context_, node.kernel, &accesses_[index]);
      case GraphNode::Kind::kCopy:
        return RunCopy(context_, node.copy, &accesses_[index]);
      case GraphNode::Kind::kFill:
        return RunFill(context_, node.fill, &accesses_[index]);
      case GraphNode::Kind::kEvent: {
        Lock lock(TheRuntime().mutex);
        Complete(*events_.at(node.handle));
        return CUDA_SUCCESS;
      }
      case GraphNode::Kind::kEmpty:
        return CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
  }

  struct Use {
    ptx::Range range;
    size_t node;
    bool writes;
  };

  CUresult FindConflict() const {
    std::vector<Use> uses;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const ptx::Range& range : accesses_[i].reads) uses.push_back({range, i, false});
      for (const ptx::Range& range : accesses_[i].writes) uses.push_back({range, i, true});
    }
    std::sort(uses.begin(), uses.end(),
              [](const Use& a, const Use& b) { return a.range.begin < b.range.begin; });
    std::vector<Use> open;  // that contain the sweep's position
    for (const Use& use : uses) {
      std::erase_if(open, [&](const Use& other) { return other.range.end <= use.range.begin; });
      for (const Use& other : open) {
        if (!(use.writes || other.writes) || use.node == other.node) continue;
        if (IsBefore(use.node, other.node) || IsBefore(other.node, use.node)) continue;
        Report(absl::StrCat("nodes of a graph that no dependency orders: ", Name(other), " and ",
                            Name(use), " the bytes at 0x", absl::Hex(use.range.begin)));
        return CUDA_ERROR_LAUNCH_FAILED;
      }
      open.push_back(use);
    }
    return CUDA_SUCCESS;
  }

  std::string Name(const Use& use) const {
    const GraphNode& node = nodes_[use.node];
    const std::string kind = node.kind == GraphNode::Kind::kKernel
                                 ? absl::StrCat("kernel ", node.kernel.function->decoded->name)
                             : node.kind == GraphNode::Kind::kCopy ? "copy"
                                                                   : "fill";
    return absl::StrCat("node ", use.node, " (", kind, ") ", use.writes ? "writes" : "reads");
  }

  Context& context_;
  const std::vector<GraphNode>& nodes_;
  const std::map<CUgraphNode, std::shared_ptr<Completion>>& events_;
  std::mt19937_64 random_;
  std::map<CUgraphNode, size_t> index_;
  std::vector<Accesses> accesses_;
  std::vector<std::vector<uint64_t>> before_;  // per node: bits of the nodes before it
};

}  // namespace

CUresult RunGraph(Context& context, const std::vector<GraphNode>& nodes, uint64_t seed,
                  const std::map<CUgraphNode, std::shared_ptr<Completion>>& events) {
  return GraphRun(context, nodes, seed, events).Run();
}

}  // namespace kiln::drivers::cuda
