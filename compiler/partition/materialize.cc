#include "compiler/partition/materialize.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/short_float.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// Of one vector of elements, relative to a read of as many from memory.
double WeightOf(const Node* node) {
  if (!IsElementwise(node) || node->op() == Op::kBitcast) return 0;
  if (node->op() == Op::kPow) return 1;
  if (IsTranscendental(node)) return 0.4;
  const bool slow = node->op() == Op::kDiv || node->op() == Op::kSqrt ||
                    node->op() == Op::kReciprocal || node->op() == Op::kIDiv ||
                    node->op() == Op::kMod;
  return slow ? 0.15 : 0.03;
}

constexpr double kFewCheapOps = 0.12;
constexpr double kCostly = 0.3;
constexpr double kSeveralReads = 1.5;
constexpr double kWrite = 1.5;
// An expression of more nodes than this is cut, which bounds the time and the stack of everything
// after.
constexpr int kMaxExpression = 256;
// Readers that are told apart. Further ones mostly share a kernel with these.
constexpr size_t kMaxReaders = 3;
constexpr size_t kMaxLeaves = 8;

int64_t Elements(const Node* node) { return ir::NumElements(node->shape()); }

// A short float made float32: costs nothing worth storing and would take twice the memory.
bool IsWidening(const Node* node) {
  return node->op() == Op::kCast && ir::IsShortFloat(node->operand(0)->dtype());
}

// Follows views and casts down to what is computed (a value rounded to a short float is) or stored.
const Node* BehindViews(const Node* node) {
  while (IsMovement(node) || node->op() == Op::kCast) {
    if (IsMaterialised(node)) break;
    if (ir::IsShortFloat(node->dtype()) && !IsMovement(node)) break;
    node = node->operand(0);
  }
  return node;
}

const Node* Product(const Node* reduction) {
  if (reduction->op() != Op::kReduceSum) return nullptr;
  const Node* value = reduction->operand(0);
  while (value->op() == Op::kCast || IsMovement(value)) value = value->operand(0);
  return value->op() == Op::kMul ? value : nullptr;
}

// What is known of a value's expression, down to stored values.
struct Expression {
  double arithmetic = 0;
  int nodes = 0;
  bool reads_reduction = false;
  absl::flat_hash_set<const Node*> leaves;  // an estimate has at most kMaxLeaves
};

class Chooser {
 public:
  explicit Chooser(const graph::Graph& graph) {
    std::vector<const Node*> roots = graph.outputs;
    for (const graph::Update& update : graph.updates) roots.push_back(update.value);
    order_ = ir::TopologicalOrder(roots);
    for (const Node* root : roots) {
      if (root->op() != Op::kInput) required_.insert(root);
    }
    for (const Node* node : order_) {
      if (IsMaterialised(node)) required_.insert(node);
      if (IsContraction(node)) {
        factors_.insert(BehindViews(Product(node)->operand(0)));
        factors_.insert(BehindViews(Product(node)->operand(1)));
      }
    }
    FindUsers();
    FindEpilogues();
    FindReaders();
  }

  std::vector<Candidate> Run() {
    std::vector<Candidate> chosen;
    for (const Node* node : order_) {
      // The estimate is an upper bound, and every rule asks for more than some bound.
      Expression expression = EstimateExpression(node);
      std::optional<Storage> storage = Choose(node, expression);
      if (storage.has_value()) {
        expression = WalkExpression(node);
        storage = Choose(node, expression);
      }
      if (storage.has_value()) {
        chosen.push_back({node, *storage, expression.arithmetic, expression.nodes});
        expression = {};
        expression.reads_reduction = IsReduction(node);
        expression.leaves = {node};
        chosen_.insert(node);
      }
      expressions_[node] = std::move(expression);
    }
    return chosen;
  }

 private:
  struct Readers {
    absl::flat_hash_set<const Node*> roots;  // stored values that the node flows into
    double repetition = 1;  // how often an element is computed, if it is not stored
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

  // A value that only leads up to another need not be stored before it. So what is stored of a
  // reduction is the end of the elementwise chain that follows it: it costs no more memory, and
  // nobody computes the chain twice.
  void FindEpilogues() {
    for (const Node* reduction : order_) {
      if (!IsReduction(reduction)) continue;
      const Node* last = EndOfChain(reduction);
      while (last != nullptr && IsWidening(last)) {
        last = IsElementwise(last->operand(0)) ? last->operand(0) : nullptr;
      }
      if (last != nullptr) stored_.insert(last);
    }
  }

  // The last elementwise value of the chain; null if there is none. A contraction, whose loops have
  // no order of their own, is also stored as it is permuted. Chains join each other (a sum of many
  // sums), so what is known of their ends is kept.
  const Node* EndOfChain(const Node* reduction) {
    const int bytes = ir::SizeOf(reduction->dtype());
    const bool permutes = IsContraction(reduction);
    std::vector<const Node*> walked;
    const Node* last = nullptr;
    for (const Node* node = Successor(reduction); node != nullptr; node = Successor(node)) {
      if (required_.contains(node) || Elements(node) != Elements(reduction)) break;
      if (ir::SizeOf(node->dtype()) > bytes) break;
      if (!IsElementwise(node) && !IsMovement(node)) break;
      if (auto known = ends_.find({node, {bytes, permutes}}); known != ends_.end()) {
        last = known->second;
        break;
      }
      walked.push_back(node);
    }
    for (size_t i = walked.size(); i-- > 0;) {
      const bool ends = IsElementwise(walked[i]) || (permutes && walked[i]->op() == Op::kPermute);
      if (last == nullptr && ends) last = walked[i];
      ends_[{walked[i], {bytes, permutes}}] = last;
    }
    return last;
  }

  // The node through which all of this one's uses go: its only user, or the one in which x and
  // where(0 < x, x, 0) meet.
  const Node* Successor(const Node* node) const {
    const std::vector<const Node*>& users = users_.at(node);
    for (const Node* candidate : users) {
      const bool all = absl::c_all_of(users, [&](const Node* user) {
        if (user == candidate) return true;
        const std::vector<const Node*>& next = users_.at(user);
        return IsElementwise(user) && !required_.contains(user) && next.size() == 1 &&
               next[0] == candidate;
      });
      if (all) return candidate;
    }
    return nullptr;
  }

  // From results to sources: who reads a value, and how often each element.
  void FindReaders() {
    for (size_t i = order_.size(); i-- > 0;) {
      const Node* node = order_[i];
      const Readers own = readers_[node];
      const bool factor = factors_.contains(node) && own.repetition >= 2 && !OnlyCasts(node);
      if (factor && IsElementwise(node)) stored_.insert(node);
      const bool root = required_.contains(node) || stored_.contains(node);
      for (const Node* operand : node->operands()) {
        Readers& readers = readers_[operand];
        // Who reads what a value is widened to reads the value.
        const bool through = IsWidening(node) && !root;
        readers.users += through ? own.users : 1;
        readers.single_user = through ? own.single_user : node;
        double repetition = root ? 1 : own.repetition;
        if (IsMovement(node) || node->op() == Op::kGatherElements) {
          const double elements = static_cast<double>(std::max<int64_t>(1, Elements(operand)));
          repetition *= std::max(1.0, static_cast<double>(Elements(node)) / elements);
        }
        readers.repetition = std::max(readers.repetition, repetition);
        if (root) {
          if (readers.roots.size() < kMaxReaders) readers.roots.insert(node);
          continue;
        }
        for (const Node* reader : own.roots) {
          if (readers.roots.size() < kMaxReaders) readers.roots.insert(reader);
        }
      }
    }
  }

  // From the operands' expressions; what they share counts more than once.
  Expression EstimateExpression(const Node* node) const {
    Expression result;
    result.nodes = 1;
    result.arithmetic = WeightOf(node);
    if (node->op() == Op::kInput) {
      result.leaves.insert(node);
      return result;
    }
    for (const Node* operand : node->operands()) {
      const Expression& inner = expressions_.at(operand);
      result.nodes = std::min(result.nodes + inner.nodes, 1 << 20);
      result.arithmetic += inner.arithmetic;
      result.reads_reduction = result.reads_reduction || inner.reads_reduction;
      for (const Node* leaf : inner.leaves) {
        if (result.leaves.size() < kMaxLeaves) result.leaves.insert(leaf);
      }
    }
    return result;
  }

  // Each node once.
  Expression WalkExpression(const Node* node) const {
    Expression result;
    absl::flat_hash_set<const Node*> seen = {node};
    std::vector<const Node*> pending = {node};
    while (!pending.empty()) {
      const Node* next = pending.back();
      pending.pop_back();
      if (next->op() == Op::kInput || (next != node && chosen_.contains(next))) {
        result.leaves.insert(next);
        result.reads_reduction = result.reads_reduction || IsReduction(next);
        continue;
      }
      ++result.nodes;
      result.arithmetic += WeightOf(next);
      for (const Node* operand : next->operands()) {
        if (seen.insert(operand).second) pending.push_back(operand);
      }
    }
    return result;
  }

  // Reads of memory for one element: small operands stay in the cache.
  static double ReadsOf(const Node* node, const Expression& expression) {
    double reads = 0;
    const double elements = static_cast<double>(std::max<int64_t>(1, Elements(node)));
    for (const Node* leaf : expression.leaves) {
      reads += std::min(1.0, static_cast<double>(Elements(leaf)) / elements);
    }
    return reads;
  }

  std::optional<Storage> Choose(const Node* node, const Expression& expression) const {
    if (required_.contains(node)) return Storage::kRequired;
    if (stored_.contains(node)) return Storage::kStored;
    if (IsWidening(node)) return std::nullopt;
    if (expression.nodes > kMaxExpression && IsElementwise(node)) return Storage::kStored;
    if (expression.nodes > 4 * kMaxExpression && IsMovement(node)) return Storage::kStored;
    const Readers& readers = readers_.at(node);
    // An input that is an output as it is has no reader.
    if (!IsElementwise(node)) return std::nullopt;
    // A chain is best cut at its end.
    const bool ends_here = readers.users > 1 || !IsElementwise(readers.single_user);
    if (!ends_here) return std::nullopt;
    if (!OnlyCasts(node)) {
      const bool worthwhile = expression.arithmetic > kFewCheapOps || expression.reads_reduction ||
                              ReadsOf(node, expression) > kSeveralReads;
      if (readers.repetition >= 4 && worthwhile) return Storage::kStored;
    }
    return ChooseByReaders(node, expression, readers);
  }

  static bool OnlyCasts(const Node* node) {
    while (node->op() == Op::kCast || IsMovement(node)) node = node->operand(0);
    return !IsElementwise(node);
  }

  static std::optional<Storage> ChooseByReaders(const Node* node, const Expression& expression,
                                                const Readers& readers) {
    if (readers.roots.size() < 2) return std::nullopt;
    const double count = static_cast<double>(std::min(readers.roots.size(), kMaxReaders));
    const double once = ReadsOf(node, expression) + expression.arithmetic;
    if ((count - 1) * (once - 1) > kWrite) return Storage::kStored;
    if (expression.arithmetic >= kCostly) return Storage::kNearby;
    return std::nullopt;
  }

  std::vector<const Node*> order_;
  absl::flat_hash_set<const Node*> required_;
  absl::flat_hash_set<const Node*> factors_;  // computed operands of contractions
  // Factors of contractions, and ends of the chains after reductions.
  absl::flat_hash_set<const Node*> stored_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> users_;
  absl::flat_hash_map<const Node*, Readers> readers_;
  absl::flat_hash_map<const Node*, Expression> expressions_;
  // EndOfChain from a node on, for reductions with elements of so many bytes that are contractions
  // or not.
  absl::flat_hash_map<std::pair<const Node*, std::pair<int, bool>>, const Node*> ends_;
  absl::flat_hash_set<const Node*> chosen_;
};

// Dimensions along which the view behind `factor` repeats its elements.
bool Repeats(const Node* factor) {
  double repetition = 1;
  while (IsMovement(factor) || factor->op() == Op::kCast) {
    const Node* operand = factor->operand(0);
    const double elements = static_cast<double>(std::max<int64_t>(1, Elements(operand)));
    repetition *= static_cast<double>(Elements(factor)) / elements;
    factor = operand;
  }
  return repetition > 1.5;
}

}  // namespace

bool IsContraction(const Node* node) {
  const Node* product = Product(node);
  return product != nullptr && Repeats(product->operand(0)) && Repeats(product->operand(1));
}

std::vector<Candidate> ChooseStored(const graph::Graph& graph) { return Chooser(graph).Run(); }

}  // namespace kiln::partition
