#include "compiler/proof/copies.h"

#include <algorithm>
#include <utility>

namespace kiln::proof {
namespace {

using schedule::Loop;
using schedule::Statement;
using schedule::Store;

class Finder {
 public:
  explicit Finder(std::vector<CopyStore>* stores) : stores_(*stores) {}

  bool Find(const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      loops_.push_back(loop);
      const bool found = std::all_of(loop->body.begin(), loop->body.end(),
                                     [this](const Statement& inner) { return Find(inner); });
      loops_.pop_back();
      return found;
    }
    const auto* store = std::get_if<Store>(&statement.node);
    if (store == nullptr) return false;
    CopyStore copy{store, loops_, kernel::SumOf(store->index)};
    for (const auto& [atom, coefficient] : copy.index.terms) {
      for (const Loop* loop : loops_) {
        if (atom != loop->range && kernel::DependsOn(atom, loop->range)) return false;
      }
    }
    stores_.push_back(std::move(copy));
    return true;
  }

 private:
  std::vector<CopyStore>& stores_;
  std::vector<const Loop*> loops_;
};

// Processes the loops' coefficients in descending order of magnitude, so that the remaining terms
// bound each value.
class Solver {
 public:
  using Visit = absl::FunctionRef<void(absl::Span<const int64_t>)>;

  Solver(const CopyStore& store, Visit visit) : visit_(visit), values_(store.loops.size()) {
    for (size_t i = 0; i < store.loops.size(); ++i) {
      const ir::Node* range = store.loops[i]->range;
      unknowns_.push_back({i, store.index.Coefficient(range), ir::ExtentOf(range), 0, 0});
    }
    std::stable_sort(unknowns_.begin(), unknowns_.end(), [](const Unknown& a, const Unknown& b) {
      return Size(a.coefficient) > Size(b.coefficient);
    });
    int64_t rest_min = 0, rest_max = 0;
    for (size_t i = unknowns_.size(); i-- > 0;) {
      unknowns_[i].rest_min = rest_min;
      unknowns_[i].rest_max = rest_max;
      const int64_t reach = unknowns_[i].coefficient * (unknowns_[i].extent - 1);
      (reach < 0 ? rest_min : rest_max) += reach;
    }
  }

  void Solve(int64_t target, size_t depth = 0) {
    if (depth == unknowns_.size()) {
      if (target == 0) visit_(values_);
      return;
    }
    const Unknown& unknown = unknowns_[depth];
    if (unknown.coefficient == 0) {
      Try(0, target, depth);
      if (unknown.extent > 1) Try(unknown.extent - 1, target, depth);
      return;
    }
    int64_t low = target - unknown.rest_max;
    int64_t high = target - unknown.rest_min;
    if (unknown.coefficient < 0) std::swap(low, high);
    low = CeilDivide(low, unknown.coefficient);
    high = -CeilDivide(-high, unknown.coefficient);
    // If the loops are digits of the index, these bounds leave at most one value.
    for (int64_t value = std::max<int64_t>(low, 0); value <= std::min(high, unknown.extent - 1);
         ++value) {
      Try(value, target, depth);
    }
  }

 private:
  struct Unknown {
    size_t loop = 0;
    int64_t coefficient = 0;
    int64_t extent = 0;
    int64_t rest_min = 0;  // sum of the minima of the terms after this one
    int64_t rest_max = 0;
  };

  static int64_t Size(int64_t value) { return value < 0 ? -value : value; }
  static int64_t CeilDivide(int64_t a, int64_t b) {
    const int64_t quotient = a / b;
    return quotient + ((a % b != 0 && (a < 0) == (b < 0)) ? 1 : 0);
  }

  void Try(int64_t value, int64_t target, size_t depth) {
    values_[unknowns_[depth].loop] = value;
    Solve(target - unknowns_[depth].coefficient * value, depth + 1);
  }

  Visit visit_;
  std::vector<Unknown> unknowns_;
  std::vector<int64_t> values_;
};

}  // namespace

bool FindCopyStores(absl::Span<const Statement* const> statements, std::vector<CopyStore>* stores) {
  Finder finder(stores);
  return std::all_of(statements.begin(), statements.end(),
                     [&finder](const Statement* statement) { return finder.Find(*statement); });
}

void ForEachSource(const CopyStore& store, int64_t target, int64_t constant,
                   absl::FunctionRef<void(absl::Span<const int64_t>)> visit) {
  Solver(store, visit).Solve(target - constant);
}

}  // namespace kiln::proof
