#include "compiler/kernel/bounds.h"

#include <numeric>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/spec.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/index.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/kernel/text.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

absl::Status CheckAccess(const Kernel& kernel, IndexMath& math, int buffer, const Node* index,
                         const Node* valid, const char* what) {
  if (buffer < 0 || buffer >= static_cast<int>(kernel.buffers.size())) {
    return absl::InternalError(
        absl::StrCat("kernel ", kernel.name, ": a ", what, " names buffer ", buffer));
  }
  const Validity validity = math.ToValidity(valid);
  // An access that never happens may name any element.
  if (validity.never) return absl::OkStatus();
  const Interval bounds = math.BoundsOf(index, validity);
  if (bounds.low >= 0 && bounds.high < kernel.buffers[buffer].elements) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "kernel ", kernel.name, ": the ", what, " b", buffer, "[", PrintExpression(index),
      valid == nullptr ? "" : " if " + PrintExpression(valid), "] may reach element ",
      bounds.low < 0 ? bounds.low : bounds.high, " of ", kernel.buffers[buffer].elements));
}

// One digit of a number: takes the values coefficient * [0, extent).
struct ScaledDigit {
  // Wide enough for a product of two int64.
  __int128 coefficient = 1;
  __int128 extent = 1;
};

// Checks that points of a scatter that differ in its ranges write different elements: the ranges
// and the rest of the index must be digits of one number, each larger than the range of all lower
// digits together.
absl::Status CheckDistinct(const Kernel& kernel, IndexMath& math, const Stage& stage) {
  if (stage.ordered_ranges.empty()) return absl::OkStatus();
  const Store& store = stage.stores[0];
  const Validity validity = math.ToValidity(store.valid);
  if (validity.never) return absl::OkStatus();
  auto error = [&] {
    return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": the scatter to b",
                                            store.buffer, "[", PrintExpression(store.index),
                                            "] may go to one element at several points"));
  };
  std::vector<ScaledDigit> digits;
  Sum rest = math.ToSum(store.index);
  for (const Node* range : stage.ranges) {
    const int64_t coefficient = rest.Coefficient(range);
    if (range->attr<ir::RangeAttr>().extent == 1) continue;
    // All points of a range that does not change the index would write one element.
    if (coefficient <= 0) return error();
    digits.push_back({coefficient, range->attr<ir::RangeAttr>().extent});
    std::erase_if(rest.terms, [&](const Term& term) { return term.atom == range; });
  }
  // The rest is the position that the data gives; it may depend on the ranges. It takes only
  // multiples of `unit`, so it counts as a digit of that weight.
  int64_t unit = 0;
  for (const Term& term : rest.terms) unit = std::gcd(unit, term.coefficient);
  if (unit != 0) {
    rest.constant = 0;
    const Interval reach = math.BoundsOf(math.ToNode(rest), validity);
    if (!IsKnown(reach)) return error();
    digits.push_back({unit, (reach.high - reach.low) / unit + 1});
  }
  absl::c_sort(digits, [](const ScaledDigit& a, const ScaledDigit& b) {
    return a.coefficient < b.coefficient;
  });
  __int128 reached = 0;
  for (const ScaledDigit& digit : digits) {
    if (digit.extent == 1) continue;
    if (digit.coefficient <= reached) return error();
    reached += digit.coefficient * (digit.extent - 1);
  }
  return absl::OkStatus();
}

std::vector<const Node*> Roots(const Stage& stage) {
  std::vector<const Node*> roots;
  for (const Store& store : stage.stores) {
    roots.insert(roots.end(), {store.index, store.value});
    if (store.valid != nullptr) roots.push_back(store.valid);
  }
  return roots;
}

// Visits the stages in order and tracks which locals have been written.
class FormVerifier {
 public:
  explicit FormVerifier(const Kernel& kernel)
      : kernel_(kernel), written_(kernel.buffers.size(), false) {}

  absl::Status Run() {
    for (const Node* range : kernel_.grid) {
      if (absl::Status s = Enter(range, &in_scope_); !s.ok()) return s;
    }
    for (const Stage& stage : kernel_.stages) {
      if (absl::Status s = VerifyStage(stage); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  using Ranges = absl::flat_hash_set<const Node*>;

  absl::Status Error(std::string message) const {
    return absl::InternalError(absl::StrCat("kernel ", kernel_.name, ": ", message));
  }

  absl::Status Enter(const Node* range, Ranges* scope) {
    if (range->op() != Op::kRange || range->attr<ir::RangeAttr>().extent < 1) {
      return Error("a loop is not a range or is empty");
    }
    // Ranges are interned, so two loops with the same id and extent would be one node.
    if (!ids_.insert(range->attr<ir::RangeAttr>().id).second) {
      return Error(absl::StrCat("range ", range->attr<ir::RangeAttr>().id, " is used twice"));
    }
    scope->insert(range);
    return absl::OkStatus();
  }

  absl::Status VerifyStage(const Stage& stage) {
    Ranges outer = in_scope_;
    for (const Node* range : stage.ranges) {
      if (absl::Status s = Enter(range, &outer); !s.ok()) return s;
    }
    for (const Node* range : stage.ordered_ranges) {
      if (absl::Status s = Enter(range, &outer); !s.ok()) return s;
    }
    Ranges inner = outer;
    for (const Node* range : stage.reduce_ranges) {
      if (absl::Status s = Enter(range, &inner); !s.ok()) return s;
    }
    if (stage.stores.empty()) return Error("a stage stores nothing");
    if (absl::Status s = VerifyScatter(stage); !s.ok()) return s;
    for (const Node* node : ir::TopologicalOrder(Roots(stage))) {
      if (absl::Status s = VerifyNode(stage, inner, node); !s.ok()) return s;
    }
    for (const Store& store : stage.stores) {
      if (absl::Status s = VerifyStore(outer, store); !s.ok()) return s;
    }
    // Set after its loads were checked: a stage may not read a local that it writes itself.
    for (const Store& store : stage.stores) written_[store.buffer] = true;
    return absl::OkStatus();
  }

  absl::Status VerifyNode(const Stage& stage, const Ranges& scope, const Node* node) {
    if (node->op() == Op::kRange && !scope.contains(node)) return Error("a range is out of scope");
    if (node->op() == Op::kReduce) {
      const auto ranges = node->operands().subspan(1);
      const bool all = ranges.size() == stage.reduce_ranges.size() &&
                       absl::c_all_of(ranges, [&](const Node* range) {
                         return absl::c_linear_search(stage.reduce_ranges, range);
                       });
      if (!all) return Error("a reduction does not run over its stage's reduce ranges");
    }
    if (node->op() == Op::kLoad) return VerifyLoad(stage, node);
    return absl::OkStatus();
  }

  // Only scatters write updated buffers: stages with ordered ranges and one store.
  absl::Status VerifyScatter(const Stage& stage) const {
    const bool scatters = !stage.ordered_ranges.empty();
    for (const Store& store : stage.stores) {
      if (store.buffer < 0 || store.buffer >= static_cast<int>(kernel_.buffers.size())) {
        return Error(absl::StrCat("a store names buffer ", store.buffer));
      }
      if ((kernel_.buffers[store.buffer].access == Access::kUpdate) == scatters) continue;
      return Error("only a scatter updates a buffer");
    }
    if (!scatters) return absl::OkStatus();
    if (stage.stores.size() != 1 || !stage.reduce_ranges.empty() || kernel_.stages.size() != 1) {
      return Error("a scatter has one stage with one store and no reductions");
    }
    return absl::OkStatus();
  }

  // Returns whether the load is the old value that a scatter combines: its own element, under the
  // same condition.
  static bool IsOld(const Stage& stage, const Node* load) {
    const Store& store = stage.stores[0];
    if (load->attr<ir::IntAttr>().value != store.buffer || load->operand(0) != store.index) {
      return false;
    }
    const Node* valid = load->operands().size() > 1 ? load->operand(1) : nullptr;
    return valid == store.valid;
  }

  absl::Status VerifyLoad(const Stage& stage, const Node* load) {
    const int64_t number = load->attr<ir::IntAttr>().value;
    if (number < 0 || number >= static_cast<int64_t>(kernel_.buffers.size())) {
      return Error(absl::StrCat("a load names buffer ", number));
    }
    const Buffer& buffer = kernel_.buffers[number];
    if (buffer.dtype != load->dtype())
      return Error("the dtype of a load is not that of its buffer");
    if (buffer.access == Access::kUpdate) {
      return IsOld(stage, load) ? absl::OkStatus()
                                : Error("a scatter reads more than the element that it writes");
    }
    if (buffer.memory == Memory::kGlobal && buffer.access == Access::kWrite) {
      return Error(absl::StrCat("buffer ", number, " is written and read"));
    }
    if (buffer.memory == Memory::kLocal && !written_[number]) {
      return Error(absl::StrCat("local ", number, " is read before it is written"));
    }
    return absl::OkStatus();
  }

  // A store's index must not depend on reduced ranges; neither may its value outside of reductions.
  absl::Status VerifyStore(const Ranges& scope, const Store& store) {
    if (store.buffer < 0 || store.buffer >= static_cast<int>(kernel_.buffers.size())) {
      return Error(absl::StrCat("a store names buffer ", store.buffer));
    }
    const Buffer& buffer = kernel_.buffers[store.buffer];
    if (buffer.access == Access::kRead) return Error("a store writes to an input");
    if (buffer.dtype != store.value->dtype())
      return Error("the dtype of a store is not that of its buffer");
    std::vector<const Node*> pending = {store.index, store.value};
    if (store.valid != nullptr) pending.push_back(store.valid);
    Ranges seen;
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (node->op() == Op::kReduce || !seen.insert(node).second) continue;
      if (node->op() == Op::kRange && !scope.contains(node)) {
        return Error("a store depends on a reduce range outside of its reductions");
      }
      pending.insert(pending.end(), node->operands().begin(), node->operands().end());
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  std::vector<bool> written_;
  Ranges in_scope_;
  absl::flat_hash_set<int64_t> ids_;
};

}  // namespace

absl::Status VerifyBounds(const Kernel& kernel, ir::Context& context) {
  IndexMath math(context);
  for (const Stage& stage : kernel.stages) {
    for (const Store& store : stage.stores) {
      absl::Status status =
          CheckAccess(kernel, math, store.buffer, store.index, store.valid, "store to");
      if (!status.ok()) return status;
    }
    if (absl::Status status = CheckDistinct(kernel, math, stage); !status.ok()) return status;
    for (const Node* node : ir::TopologicalOrder(Roots(stage))) {
      if (node->op() != Op::kLoad) continue;
      absl::Status status = CheckAccess(
          kernel, math, static_cast<int>(node->attr<ir::IntAttr>().value), node->operand(0),
          node->operands().size() > 1 ? node->operand(1) : nullptr, "load of");
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Verify(const Kernel& kernel) {
  for (const Stage& stage : kernel.stages) {
    if (absl::Status s = ir::Verify(ir::Level::kKernel, Roots(stage)); !s.ok()) return s;
  }
  return FormVerifier(kernel).Run();
}

}  // namespace kiln::kernel
