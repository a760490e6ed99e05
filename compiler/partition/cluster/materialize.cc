#include "compiler/partition/cluster/materialize.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/cluster/epilogue.h"
#include "compiler/partition/cluster/expression.h"
#include "compiler/partition/contraction.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// A result of this many cheap operations is not worth storing, however often it is read.
constexpr int kFewOperations = 4;
// An expression as costly as this many divisions is worth keeping nearby.
constexpr int kCostlyDivisions = 2;
constexpr double kSeveralReads = 1.5;
// Matrix units take short floats from memory as they are. A factor that is rounded to one, and is
// part of at least so many results, is rounded once instead of in each block that reads it.
constexpr double kRoundedReads = 256;
// An expression with more nodes than this is cut, which bounds the time and the stack of later
// passes.
constexpr int kExpressionNodesMax = 256;
// Bound for values that are computed from stored values: each operand may read some.
constexpr int kOperandsMax = 3;
// Bound on the readers that are distinguished. Further ones mostly share a kernel with these.
constexpr size_t kReadersMax = 3;

// Follows views, casts and operations left to readers down to a value that is computed (such as one
// rounded to a short float) or stored.
const Node* BehindViews(const Node* node, bool matrix_units) {
  while (!IsMaterialised(node)) {
    const bool rounds = node->op() == Op::kCast && ir::IsShortFloat(node->dtype());
    const Node* below = rounds ? nullptr : LeftToReaders(node, matrix_units);
    const bool is_view = IsMovement(node) || (node->op() == Op::kCast && !rounds);
    if (below == nullptr && !is_view) break;
    node = below != nullptr ? below : node->operand(0);
  }
  return node;
}

class Chooser {
 public:
  Chooser(const graph::Graph& graph, const drivers::Target& target, const ChosenValues& chosen)
      : costs_(target.costs.storage),
        choices_(chosen),
        costly_(CostlyArithmetic(target)),
        leaves_max_(target.limits.arguments_max / kOperandsMax - 1),
        matrix_units_(target.capabilities.matrix) {
    const std::vector<const Node*> roots = graph::Roots(graph);
    order_ = ir::TopologicalOrder(roots);
    for (const Node* root : roots) {
      if (root->op() != Op::kInput) required_.insert(root);
    }
    for (const Node* node : order_) {
      if (IsMaterialised(node)) required_.insert(node);
      if (IsContraction(node)) {
        for (const Node* factor : ProductOf(node)->operands()) {
          factors_.insert(BehindViews(factor, matrix_units_));
        }
      }
    }
    FindUsers();
    stored_ = FindEpilogues(order_, users_, required_, matrix_units_);
    FindReaders();
  }

  std::vector<Candidate> Run() {
    std::vector<Candidate> chosen;
    for (const Node* node : order_) {
      // The estimate is an upper bound, and every rule requires more than some bound. So only
      // expressions that pass with the estimate are walked exactly; walking every expression would
      // take quadratic time.
      Expression expression = EstimateExpression(node, expressions_, costs_);
      std::optional<Storage> storage = Choose(node, expression);
      if (storage.has_value()) {
        expression = WalkExpression(node, chosen_, costs_);
        storage = Choose(node, expression);
      }
      if (storage.has_value()) {
        chosen.push_back({node, *storage, expression.arithmetic, expression.nodes});
        expression = StoredExpression(node);
        chosen_.insert(node);
      }
      expressions_[node] = std::move(expression);
    }
    return chosen;
  }

 private:
  struct Readers {
    absl::flat_hash_set<const Node*> roots;  // stored values that depend on the node
    double repetition = 1;                   // how often an element is computed if it is not stored
    int users = 0;
    const Node* single_user = nullptr;
  };

  void FindUsers() {
    for (const Node* node : order_) {
      users_[node];
      for (const Node* operand : node->operands()) {
        std::vector<const Node*>& users = users_[operand];
        if (users.empty() || users.back() != node) users.push_back(node);
      }
    }
  }

  // Goes from results to sources and finds each value's readers, and how often they read each
  // element.
  void FindReaders() {
    for (size_t i = order_.size(); i-- > 0;) {
      const Node* node = order_[i];
      const Readers own = readers_[node];
      const bool factor = factors_.contains(node) && own.repetition >= 2 &&
                          (!OnlyCasts(node) || IsRoundedOften(node, own.repetition));
      // A contraction reads each element of a factor many times, and would recompute it as often.
      if (factor && IsElementwise(node)) stored_.insert(node);
      const bool root = required_.contains(node) || stored_.contains(node);
      for (const Node* operand : node->operands()) {
        Readers& readers = readers_[operand];
        // Reading a widened value is reading the value itself.
        const bool through = IsLeft(node) && !root;
        readers.users += through ? own.users : 1;
        readers.single_user = through ? own.single_user : node;
        double repetition = root ? 1 : own.repetition;
        if (IsMovement(node) || node->op() == Op::kGatherElements) {
          const double elements =
              static_cast<double>(std::max<int64_t>(1, ir::NumElements(operand->shape())));
          repetition *=
              std::max(1.0, static_cast<double>(ir::NumElements(node->shape())) / elements);
        }
        readers.repetition = std::max(readers.repetition, repetition);
        if (root) {
          if (readers.roots.size() < kReadersMax) readers.roots.insert(node);
          continue;
        }
        for (const Node* reader : own.roots) {
          if (readers.roots.size() < kReadersMax) readers.roots.insert(reader);
        }
      }
    }
  }

  std::optional<Storage> Choose(const Node* node, const Expression& expression) const {
    if (required_.contains(node)) return Storage::kRequired;
    const bool recomputed = choices_.Has(node, Choice::kRecompute);
    if (stored_.contains(node) && !recomputed) return Storage::kStored;
    if (IsLeft(node)) return std::nullopt;
    if (expression.nodes > kExpressionNodesMax && IsElementwise(node)) return Storage::kStored;
    if (expression.nodes > 4 * kExpressionNodesMax && IsMovement(node)) return Storage::kStored;
    if (expression.num_leaves > leaves_max_ && (IsElementwise(node) || IsMovement(node)))
      return Storage::kStored;
    const Readers& readers = readers_.at(node);
    // An input that is returned unchanged has no reader.
    if (!IsElementwise(node) || recomputed) return std::nullopt;
    if (choices_.Has(node, Choice::kStore)) return Storage::kStored;
    // A chain is best cut at its end.
    const bool ends_here = readers.users > 1 || !IsElementwise(readers.single_user);
    if (!ends_here) return std::nullopt;
    if (!OnlyCasts(node)) {
      const bool worthwhile = expression.arithmetic > kFewOperations * costs_.operation ||
                              expression.reads_reduction ||
                              ReadsOf(node, expression) > kSeveralReads;
      if (readers.repetition >= 4 && worthwhile) return Storage::kStored;
    }
    return ChooseByReaders(node, expression, readers);
  }

  bool IsRoundedOften(const Node* node, double repetition) const {
    return matrix_units_ && node->op() == Op::kCast && ir::IsShortFloat(node->dtype()) &&
           ir::SizeOf(node->operand(0)->dtype()) > ir::SizeOf(node->dtype()) &&
           repetition >= kRoundedReads;
  }

  bool IsLeft(const Node* node) const { return LeftToReaders(node, matrix_units_) != nullptr; }

  static bool OnlyCasts(const Node* node) {
    while (node->op() == Op::kCast || IsMovement(node)) node = node->operand(0);
    return !IsElementwise(node);
  }

  std::optional<Storage> ChooseByReaders(const Node* node, const Expression& expression,
                                         const Readers& readers) const {
    if (readers.roots.size() < 2) return std::nullopt;
    const double count = static_cast<double>(std::min(readers.roots.size(), kReadersMax));
    // Stored: once + a write + (count - 1) reads, since the first reader has the value in
    // registers. Recomputed: count * once. The condition below is the difference of the two.
    const double once = ReadsOf(node, expression) + expression.arithmetic;
    if ((count - 1) * (once - 1) > costs_.write) return Storage::kStored;
    if (expression.arithmetic >= costly_) return Storage::kNearby;
    return std::nullopt;
  }

  const drivers::StorageCosts& costs_;
  const ChosenValues& choices_;
  const double costly_;
  const int leaves_max_;  // bound on the leaves of an operand that is not stored
  const bool matrix_units_;
  std::vector<const Node*> order_;
  absl::flat_hash_set<const Node*> required_;
  absl::flat_hash_set<const Node*> factors_;  // computed operands of contractions
  // Factors of contractions, and ends of the chains after reductions.
  absl::flat_hash_set<const Node*> stored_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> users_;
  absl::flat_hash_map<const Node*, Readers> readers_;
  absl::flat_hash_map<const Node*, Expression> expressions_;
  absl::flat_hash_set<const Node*> chosen_;
};

}  // namespace

std::vector<Candidate> ChooseStored(const graph::Graph& graph, const drivers::Target& target,
                                    const ChosenValues& chosen) {
  return Chooser(graph, target, chosen).Run();
}

double CostlyArithmetic(const drivers::Target& target) {
  return kCostlyDivisions * target.costs.storage.division;
}

}  // namespace kiln::partition
