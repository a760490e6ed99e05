#include "compiler/kernel/in_place.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ir/walk.h"

namespace kiln::kernel {
namespace {

using ir::Node;

std::vector<const Node*> NodesOf(const Store& store) {
  return ir::TopologicalOrder({store.index, store.value, store.valid});
}

// The accesses of an argument by all stages.
struct Uses {
  int stage = -1;               // that accesses it
  const Node* index = nullptr;  // of all accesses
  size_t last = 0;              // place of the last access in the stage's order
  int stores = 0;
  bool is_simple = true;  // one stage and one index, without conditions or order

  void Add(int in_stage, const Node* at, size_t place) {
    is_simple = is_simple && (stage < 0 || stage == in_stage) && (index == nullptr || index == at);
    stage = in_stage;
    index = at;
    last = place;
  }
};

std::vector<Uses> FindUses(const Kernel& kernel) {
  std::vector<Uses> uses(kernel.buffers.size());
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const Stage& stage = kernel.stages[s];
    const int number = static_cast<int>(s);
    const std::vector<int> order = StoreOrder(kernel, stage);
    for (size_t place = 0; place < order.size(); ++place) {
      const Store& store = stage.stores[order[place]];
      Uses& written = uses[store.buffer];
      written.Add(number, store.index, place);
      ++written.stores;
      if (store.valid != nullptr || !stage.ordered_ranges.empty()) written.is_simple = false;
      for (const Node* node : NodesOf(store)) {
        if (node->op() != ir::Op::kLoad) continue;
        uses[node->attr<ir::IntAttr>().value].Add(number, node->operand(0), place);
      }
    }
  }
  return uses;
}

}  // namespace

std::vector<InPlace> FindInPlace(const Kernel& kernel) {
  const std::vector<Uses> uses = FindUses(kernel);
  std::vector<InPlace> pairs;
  const auto is = [&](size_t buffer, Access access) {
    const Buffer& of = kernel.buffers[buffer];
    return of.memory == Memory::kGlobal && of.access == access && uses[buffer].is_simple &&
           uses[buffer].stage >= 0;
  };
  for (size_t written = 0; written < uses.size(); ++written) {
    if (!is(written, Access::kWrite) || uses[written].stores != 1) continue;
    for (size_t read = 0; read < uses.size(); ++read) {
      const bool fits = is(read, Access::kRead) && uses[read].stage == uses[written].stage &&
                        uses[read].index == uses[written].index &&
                        uses[read].last <= uses[written].last &&
                        kernel.buffers[read].dtype == kernel.buffers[written].dtype &&
                        kernel.buffers[read].elements == kernel.buffers[written].elements;
      if (fits) pairs.push_back({static_cast<int>(read), static_cast<int>(written)});
    }
  }
  return pairs;
}

std::vector<int> StoreOrder(const Kernel& kernel, const Stage& stage) {
  std::vector<int> order(stage.stores.size());
  std::iota(order.begin(), order.end(), 0);
  const bool is_free =
      stage.stores.size() > 1 && stage.ordered_ranges.empty() &&
      std::all_of(stage.stores.begin(), stage.stores.end(), [&](const Store& store) {
        const Buffer& buffer = kernel.buffers[store.buffer];
        return buffer.memory == Memory::kGlobal && buffer.access == Access::kWrite;
      });
  if (!is_free) return order;
  // A value has more nodes than any that it is computed from.
  std::vector<size_t> nodes;
  for (const Store& store : stage.stores)
    nodes.push_back(ir::TopologicalOrder({&store.value, 1}).size());
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return nodes[a] > nodes[b]; });
  return order;
}

}  // namespace kiln::kernel
