#include "compiler/partition/reads.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/dtype.h"
#include "compiler/ir/tf32.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

bool IsReduction(const Node* node) {
  return node->op() == Op::kReduceSum || node->op() == Op::kReduceProd ||
         node->op() == Op::kReduceMax;
}

bool IsScatter(const Node* node) { return node->op() == Op::kScatterElements; }

bool IsMovement(const Node* node) {
  return (node->op() >= Op::kReshape && node->op() <= Op::kUnwindow) ||
         node->op() == Op::kContiguous || node->op() == Op::kMutable;
}

bool IsMaterialised(const Node* node) {
  return IsReduction(node) || IsScatter(node) || node->op() == Op::kContiguous ||
         node->op() == Op::kMutable;
}

bool IsElementwise(const Node* node) { return node->op() >= Op::kNeg && node->op() <= Op::kWhere; }

bool IsTranscendental(const Node* node) {
  return node->op() == Op::kExp2 || node->op() == Op::kLog2 || node->op() == Op::kSin ||
         node->op() == Op::kPow;
}

const Node* LeftToReaders(const Node* node, bool matrix_units) {
  const bool widens = node->op() == Op::kCast && ir::IsShortFloat(node->operand(0)->dtype());
  if (widens) return node->operand(0);
  if (!matrix_units) return nullptr;
  return ir::IsRoundedToTf32(node) ? node->operand(0) : ir::UnderTf32Mask(node);
}

const ir::Shape& SpaceOf(const Node* node) {
  if (IsScatter(node)) return node->operand(2)->shape();
  return IsReduction(node) ? node->operand(0)->shape() : node->shape();
}

absl::flat_hash_map<const Node*, int> CountUses(absl::Span<const Node* const> order,
                                                absl::Span<const Node* const> roots) {
  absl::flat_hash_map<const Node*, int> uses;
  for (const Node* node : order) {
    for (const Node* operand : node->operands()) ++uses[operand];
  }
  for (const Node* root : roots) uses[root] += 2;
  return uses;
}

namespace {

class ReadFinder {
 public:
  ReadFinder(const std::function<bool(const Node*)>& is_leaf, bool in_digits)
      : is_leaf_(is_leaf), in_digits_(in_digits) {}

  void Visit(const Node* node, Access access) { pending_.emplace_back(node, std::move(access)); }

  std::vector<Read> Run() {
    while (!pending_.empty()) {
      auto [node, access] = std::move(pending_.back());
      pending_.pop_back();
      std::vector<Access>& seen = seen_[node];
      // A shared value that many users read at one index is visited once; visited once per use, a
      // chain of x + x would take exponential time.
      if (std::find(seen.begin(), seen.end(), access) != seen.end()) continue;
      seen.push_back(access);
      if (is_leaf_(node)) {
        reads_.push_back({node, std::move(access)});
      } else {
        Expand(node, access);
      }
    }
    return std::move(reads_);
  }

  void Expand(const Node* node, const Access& access) {
    if (IsMovement(node)) {
      Visit(node->operand(0), MoveThrough(node, access, in_digits_));
    } else if (node->op() == Op::kGatherElements) {
      ExpandGather(node, access);
    } else if (IsScatter(node)) {
      ExpandScatter(node, access);
    } else {
      for (const Node* operand : node->operands()) Visit(operand, access);
    }
  }

 private:
  void ExpandGather(const Node* node, const Access& access) {
    VisitIndex(node->operand(1), access);
    VisitIndexed(node->operand(0), node->attr<ir::IntAttr>().value, access);
  }

  // `access` is that of the values.
  void ExpandScatter(const Node* node, const Access& access) {
    VisitIndex(node->operand(1), access);
    VisitIndexed(node->operand(0), node->attr<ir::ScatterAttr>().axis, access);
    Visit(node->operand(2), access);
  }

  void VisitIndex(const Node* index, Access access) {
    for (size_t i = 0; i < access.axes.size(); ++i) {
      // An index of size 1 is broadcast.
      if (index->shape()[i] == 1) access.axes[i] = Digits{};
    }
    Visit(index, std::move(access));
  }

  void VisitIndexed(const Node* x, int64_t axis, Access access) {
    // The position read depends on data, and an index out of range reads nothing.
    access.axes[axis] = std::nullopt;
    access.conditional = true;
    Visit(x, std::move(access));
  }

  const std::function<bool(const Node*)>& is_leaf_;
  const bool in_digits_;
  std::vector<std::pair<const Node*, Access>> pending_;
  absl::flat_hash_map<const Node*, std::vector<Access>> seen_;
  std::vector<Read> reads_;
};

}  // namespace

std::vector<Read> FindReads(const Node* root, const std::function<bool(const Node*)>& is_leaf,
                            bool in_digits) {
  ReadFinder finder(is_leaf, in_digits);
  if (IsReduction(root)) {
    // A reduction's axes are its operand's, so the walk begins there.
    finder.Visit(root->operand(0), Identity(SpaceOf(root)));
  } else {
    finder.Expand(root, Identity(SpaceOf(root)));
  }
  return finder.Run();
}

}  // namespace kiln::partition
