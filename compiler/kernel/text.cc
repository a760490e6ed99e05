#include "compiler/kernel/text.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_text.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

// An index expression with this many nodes gets a name if it is used twice.
constexpr int kNeverInPlace = 256;

class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel) : kernel_(kernel) {}

  std::string Run() {
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) PrintBuffer(i);
    if (!kernel_.grid.empty()) absl::StrAppend(&text_, "grid", PrintRanges(kernel_.grid), "\n");
    for (const Stage& stage : kernel_.stages) PrintStage(stage);
    return std::move(text_);
  }

 private:
  void PrintBuffer(size_t i) {
    const Buffer& buffer = kernel_.buffers[i];
    const char* role = buffer.memory == Memory::kLocal   ? "local"
                       : buffer.access == Access::kRead  ? "read"
                       : buffer.access == Access::kWrite ? "write"
                                                         : "update";
    absl::StrAppend(&text_, "buffer b", i, " ", std::string(ir::Name(buffer.dtype)), "[",
                    buffer.elements, "] ", role, "\n");
  }

  std::string PrintRanges(const std::vector<const Node*>& ranges) {
    std::string text;
    for (const Node* range : ranges) {
      const std::string name = absl::StrCat("r", next_range_++);
      expressions_.SetName(range, name);
      absl::StrAppend(&text, " ", name, ":", range->attr<ir::RangeAttr>().extent);
    }
    return text;
  }

  void PrintStage(const Stage& stage) {
    absl::StrAppend(&text_, "stage", PrintRanges(stage.ranges));
    if (!stage.reduce_ranges.empty()) {
      absl::StrAppend(&text_, " reduce", PrintRanges(stage.reduce_ranges));
    }
    if (!stage.ordered_ranges.empty()) {
      absl::StrAppend(&text_, " order", PrintRanges(stage.ordered_ranges));
    }
    text_ += "\n";
    CountUses(stage);
    for (const Store& store : stage.stores) {
      Name(store.index);
      Name(store.value);
      if (store.valid != nullptr) Name(store.valid);
      absl::StrAppend(&text_, "  b", store.buffer, "[", expressions_.Print(store.index));
      if (store.valid != nullptr) {
        absl::StrAppend(&text_, " if ", expressions_.Print(store.valid));
      }
      absl::StrAppend(&text_, "] = ", expressions_.Print(store.value), "\n");
    }
  }

  void CountUses(const Stage& stage) {
    uses_.clear();
    std::vector<const Node*> roots;
    for (const Store& store : stage.stores) {
      roots.insert(roots.end(), {store.index, store.value, store.valid});
    }
    for (const Node* node : ir::TopologicalOrder(roots)) {
      const size_t used = node->op() == Op::kReduce ? 1 : node->operands().size();
      for (const Node* operand : node->operands().subspan(0, used)) ++uses_[operand];
    }
    for (const Node* root : roots) ++uses_[root];
  }

  // Returns the number of nodes that an index expression prints in place, at most kNeverInPlace;
  // all other expressions have that size. Requires: the sizes of the operands are known.
  int WrittenSize(const Node* node) const {
    if (node->operands().empty() || expressions_.HasName(node)) return 1;
    if (node->dtype() != ir::DType::kInt64) return kNeverInPlace;
    switch (node->op()) {
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kIDiv:
      case Op::kMod:
        return std::min(kNeverInPlace,
                        1 + sizes_.at(node->operand(0)) + sizes_.at(node->operand(1)));
      default:
        return kNeverInPlace;
    }
  }

  // Short index expressions are printed in place, since that reads better.
  void Name(const Node* root) {
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      sizes_[node] = WrittenSize(node);
      if (uses_[node] < 2 || expressions_.HasName(node) || sizes_[node] < kNeverInPlace) continue;
      const std::string name = absl::StrCat("v", next_value_++);
      absl::StrAppend(&text_, "  ", name, " = ", expressions_.Define(node), "\n");
      expressions_.SetName(node, name);
      sizes_[node] = 1;
    }
  }

  const Kernel& kernel_;
  std::string text_;
  ExpressionPrinter expressions_;
  absl::flat_hash_map<const Node*, int> uses_;
  absl::flat_hash_map<const Node*, int> sizes_;
  int next_range_ = 0;
  int next_value_ = 0;
};

}  // namespace

std::string PrintExpression(const Node* node) { return ExpressionPrinter().Print(node); }

std::string Print(const Kernel& kernel) { return KernelPrinter(kernel).Run(); }

}  // namespace kiln::kernel
