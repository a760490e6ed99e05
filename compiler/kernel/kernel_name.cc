#include "compiler/kernel/kernel_name.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_text.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

std::string Extents(const std::vector<const Node*>& ranges) {
  std::string text = absl::StrJoin(ranges, "x", [](std::string* out, const Node* range) {
    absl::StrAppend(out, range->attr<ir::RangeAttr>().extent);
  });
  return text.empty() ? "1" : text;
}

// A product of two loads, reduced: a matmul or a convolution.
bool IsContraction(const Node* reduce) {
  const Node* value = reduce->operand(0);
  // Short floats are multiplied in float32, with casts around the product and its factors.
  while (value->op() == Op::kCast) value = value->operand(0);
  if (reduce->attr<ir::ReduceAttr>().kind != ir::ReduceKind::kSum || value->op() != Op::kMul) {
    return false;
  }
  auto is_load = [](const Node* node) {
    while (node->op() == Op::kCast) node = node->operand(0);
    return node->op() == Op::kLoad;
  };
  return is_load(value->operand(0)) && is_load(value->operand(1));
}

std::string StageName(const Stage& stage) {
  if (!stage.ordered_ranges.empty()) return "scatter";
  std::vector<std::string> kinds;
  std::vector<const Node*> roots;
  for (const Store& store : stage.stores) roots.push_back(store.value);
  for (const Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() != Op::kReduce) continue;
    std::string kind =
        IsContraction(node) ? "contract" : std::string(Name(node->attr<ir::ReduceAttr>().kind));
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(std::move(kind));
  }
  return kinds.empty() ? "elementwise" : absl::StrJoin(kinds, "_");
}

std::string StageSize(const Stage& stage) {
  std::string size = Extents(stage.ranges);
  if (!stage.reduce_ranges.empty()) absl::StrAppend(&size, "_", Extents(stage.reduce_ranges));
  if (!stage.ordered_ranges.empty()) absl::StrAppend(&size, "_", Extents(stage.ordered_ranges));
  return size;
}

}  // namespace

std::string KernelName(const Kernel& kernel) {
  if (kernel.stages.size() == 1 && kernel.grid.empty()) {
    return absl::StrCat(StageName(kernel.stages[0]), "_", StageSize(kernel.stages[0]));
  }
  if (kernel.grid.empty()) return absl::StrCat("stages_", kernel.stages.size());
  std::vector<std::string> parts;
  for (const Stage& stage : kernel.stages) {
    std::string name = StageName(stage);
    if (parts.empty() || parts.back() != name) parts.push_back(std::move(name));
  }
  return absl::StrCat("rows_", Extents(kernel.grid), "_", absl::StrJoin(parts, "_"));
}

}  // namespace kiln::kernel
