// Implements EstimateCost and CountPoints of kernel.h.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

int64_t Points(const std::vector<const Node*>& ranges) {
  int64_t points = 1;
  for (const Node* range : ranges) points *= ir::ExtentOf(range);
  return points;
}

// Returns an upper bound on the number of distinct values: the product of the extents of the ranges
// that the index depends on.
int64_t DistinctPoints(const Node* index) {
  int64_t points = 1;
  for (const Node* node : ir::TopologicalOrder({&index, 1})) {
    if (node->op() == Op::kRange) points *= ir::ExtentOf(node);
  }
  return points;
}

bool IsFlop(const Node* node) {
  if (node->operands().empty() || !ir::IsFloat(node->dtype())) return false;
  return node->op() != Op::kLoad && node->op() != Op::kCast && node->op() != Op::kBitcast &&
         node->op() != Op::kReduce;
}

// Returns whether the reduction adds products.
bool IsSumOfProducts(const Node* reduce) {
  return reduce->attr<ir::ReduceAttr>().kind == ir::ReduceKind::kSum &&
         ir::IsFloat(reduce->dtype()) && reduce->operand(0)->op() == Op::kMul;
}

// Marks the nodes inside a reduction.
void MarkReduced(const Node* reduce, absl::flat_hash_set<const Node*>* reduced) {
  const Node* value = reduce->operand(0);
  for (const Node* node : ir::TopologicalOrder({&value, 1})) reduced->insert(node);
}

}  // namespace

Cost EstimateCost(const Kernel& kernel) {
  Cost cost;
  std::vector<int64_t> touched(kernel.buffers.size(), 0);
  const int64_t grid = Points(kernel.grid);
  for (const Stage& stage : kernel.stages) {
    const int64_t outer = grid * Points(stage.ranges) * Points(stage.ordered_ranges);
    const int64_t inner = outer * Points(stage.reduce_ranges);
    std::vector<const Node*> values;
    for (const Store& store : stage.stores) {
      values.push_back(store.value);
      touched[store.buffer] = std::max(touched[store.buffer], DistinctPoints(store.index));
    }
    const std::vector<const Node*> order = ir::TopologicalOrder(values);
    absl::flat_hash_set<const Node*> reduced;
    for (const Node* node : order) {
      if (node->op() == Op::kReduce) MarkReduced(node, &reduced);
    }
    for (const Node* node : order) {
      const int64_t points = reduced.contains(node) ? inner : outer;
      if (IsFlop(node)) {
        cost.flops += points;
        cost.other_flops[node->dtype()] += points;
      }
      if (node->op() == Op::kReduce) {
        cost.flops += inner;
        const bool fused = IsSumOfProducts(node);
        if (ir::IsFloat(node->dtype()))
          (fused ? cost.fused_flops : cost.other_flops)[node->dtype()] += inner;
        // The product counted as an operation of its own.
        if (fused) {
          cost.fused_flops[node->dtype()] += inner;
          cost.other_flops[node->dtype()] -= inner;
        }
      }
      if (node->op() == Op::kLoad) {
        // Assumes that accesses to one buffer overlap: the widest one counts.
        int64_t& count = touched[node->attr<ir::IntAttr>().value];
        count = std::max(count, DistinctPoints(node->operand(0)));
      }
    }
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer& buffer = kernel.buffers[i];
    if (buffer.memory != Memory::kGlobal) continue;
    // An index such as r0 / 4 repeats values, so the estimate may exceed the buffer.
    const int64_t bytes = std::min(touched[i], buffer.elements) * ir::SizeOf(buffer.dtype);
    cost.bytes += buffer.access == Access::kUpdate ? 2 * bytes : bytes;
    if (buffer.access != Access::kRead) cost.written_bytes += bytes;
  }
  return cost;
}

int64_t CountPoints(const Kernel& kernel) {
  int64_t points = 0;
  for (const Stage& stage : kernel.stages) {
    points += Points(stage.ranges) * Points(stage.reduce_ranges) * Points(stage.ordered_ranges);
  }
  return points * Points(kernel.grid);
}

}  // namespace kiln::kernel
