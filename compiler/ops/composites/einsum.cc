// einsum: a chain of contractions of two tensors in the cheapest order. Each is one sum of one
// product of two views, which the compiler recognises as a contraction.
#include "compiler/ops/rules/einsum.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <set>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;
using Labels = std::vector<Label>;
using Sizes = std::map<Label, int64_t>;

// A tensor whose dimensions have distinct names.
struct Labelled {
  const Node* x;
  Labels labels;
};

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Replaces dimensions with the same name by their diagonal.
Labelled WithoutRepeats(Builder& b, Labelled term) {
  for (size_t first = 0; first < term.labels.size(); ++first) {
    for (size_t second = term.labels.size() - 1; second > first; --second) {
      if (term.labels[second] != term.labels[first]) continue;
      term.x = Diagonal(b, term.x, static_cast<int64_t>(first), static_cast<int64_t>(second));
      const Label label = term.labels[first];
      term.labels.erase(term.labels.begin() + static_cast<int64_t>(second));
      term.labels.erase(term.labels.begin() + static_cast<int64_t>(first));
      term.labels.push_back(label);
      --first;
      break;
    }
  }
  return term;
}

// Returns x with one dimension per label in `labels`, of size 1 if x has no dimension of that name.
const Node* Aligned(Builder& b, const Labelled& term, const Labels& labels) {
  std::vector<int64_t> order;
  Shape shape;
  for (const Label label : labels) {
    const auto found = std::find(term.labels.begin(), term.labels.end(), label);
    if (found == term.labels.end()) {
      shape.push_back(1);
      continue;
    }
    order.push_back(found - term.labels.begin());
    shape.push_back(term.x->shape()[order.back()]);
  }
  return b.Reshape(b.Permute(term.x, order), shape);
}

// Sums over all dimensions that `kept` does not name.
Labelled Summed(Builder& b, const Labelled& term, const Labels& kept) {
  std::vector<int64_t> axes;
  Labels labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (Has(kept, term.labels[i])) {
      labels.push_back(term.labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return {b.Sum(term.x, axes), labels};
}

// Orders dimensions as in a matrix product: those of both, of x only, of y only; then the
// dimensions that are not kept, which are summed.
Labelled Contract(Builder& b, const Labelled& x, const Labelled& y, const Labels& kept) {
  Labels both, only_x, only_y, summed;
  for (const Label label : x.labels) {
    (!Has(kept, label) ? summed : Has(y.labels, label) ? both : only_x).push_back(label);
  }
  for (const Label label : y.labels) {
    if (Has(x.labels, label)) continue;
    (Has(kept, label) ? only_y : summed).push_back(label);
  }
  Labels labels = both;
  for (const Labels* part : {&only_x, &only_y, &summed}) {
    labels.insert(labels.end(), part->begin(), part->end());
  }
  const Node* product = b.Mul(Aligned(b, x, labels), Aligned(b, y, labels));
  return Summed(b, {product, labels}, kept);
}

// Finds the cheapest tree of contractions by dynamic programming over sets of operands, which are
// bit masks.
class Planner {
 public:
  Planner(const std::vector<Labelled>& terms, const Labels& result, const Sizes& sizes)
      : result_(result),
        sizes_(sizes),
        terms_(terms),
        cost_(size_t{1} << terms.size(), 0),
        split_(cost_.size(), 0),
        labels_(cost_.size()) {
    for (size_t set = 1; set < labels_.size(); ++set) labels_[set] = LabelsOf(set);
  }

  // Returns for every set the part that is contracted first.
  const std::vector<size_t>& Plan() {
    for (size_t set = 1; set < cost_.size(); ++set) {
      if (std::has_single_bit(set)) continue;
      cost_[set] = std::numeric_limits<double>::infinity();
      // Considers only parts with the highest operand of the set; all others are their complements.
      for (size_t part = (set - 1) & set; part > set / 2; part = (part - 1) & set) {
        const double cost = cost_[part] + cost_[set ^ part] + Work(part, set ^ part);
        if (cost >= cost_[set] && split_[set] != 0) continue;
        cost_[set] = cost;
        split_[set] = part;
      }
    }
    return split_;
  }

  // Returns the names that remain once the operands in `set` are contracted: those that the result
  // or another operand has.
  Labels Kept(size_t set) const {
    Labels kept = result_;
    for (size_t i = 0; i < terms_.size(); ++i) {
      if ((set >> i & 1) == 0) {
        kept.insert(kept.end(), terms_[i].labels.begin(), terms_[i].labels.end());
      }
    }
    return kept;
  }

 private:
  // Returns the dimensions that remain of a set after its contraction, in order.
  Labels LabelsOf(size_t set) const {
    const Labels kept = Kept(set);
    std::set<Label> labels;
    for (size_t i = 0; i < terms_.size(); ++i) {
      for (const Label label : terms_[i].labels) {
        if ((set >> i & 1) != 0 && Has(kept, label)) labels.insert(label);
      }
    }
    return Labels(labels.begin(), labels.end());
  }

  // Returns the number of products: all points of both sides' dimensions.
  double Work(size_t x, size_t y) const {
    Labels labels;
    std::set_union(labels_[x].begin(), labels_[x].end(), labels_[y].begin(), labels_[y].end(),
                   std::back_inserter(labels));
    // A double, since the product may exceed 64 bits.
    double work = 1;
    for (const Label label : labels) work *= static_cast<double>(sizes_.at(label));
    return work;
  }

  const Labels& result_;
  const Sizes& sizes_;
  const std::vector<Labelled>& terms_;
  std::vector<double> cost_;
  std::vector<size_t> split_;
  std::vector<Labels> labels_;  // by set, like the two above
};

Labelled ContractSet(Builder& b, const std::vector<Labelled>& terms, const Planner& planner,
                     const std::vector<size_t>& split, size_t set) {
  if (std::has_single_bit(set)) {
    return Summed(b, terms[std::countr_zero(set)], planner.Kept(set));
  }
  const Labelled x = ContractSet(b, terms, planner, split, split[set]);
  const Labelled y = ContractSet(b, terms, planner, split, set ^ split[set]);
  return Contract(b, x, y, planner.Kept(set));
}

Expansion ExpandEinsum(Builder& b, Operands operands, const Attributes& attributes) {
  std::vector<Shape> shapes;
  for (const Node* operand : operands) shapes.push_back(operand->shape());
  const auto equation = ParseEinsum(StringOf(attributes, "equation"), shapes);
  if (!equation.ok()) return equation.status();
  std::vector<Labelled> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    terms.push_back(WithoutRepeats(b, {operands[i], equation->operands[i]}));
  }
  Planner planner(terms, equation->result, equation->sizes);
  const std::vector<size_t>& split = planner.Plan();
  const Labelled whole = ContractSet(b, terms, planner, split, (size_t{1} << terms.size()) - 1);
  const Node* result = Aligned(b, whole, equation->result);
  return b.BroadcastTo(result, equation->ResultShape());
}

constexpr Rule kEinsumShape = {"einsum", "",
                               R"rule(-> einsum_shape(attributes["equation"], shapes))rule"};

}  // namespace

std::vector<OpDef> EinsumComposites() {
  OpDef row = Composite(
      "einsum", {"tensors*"}, DTypeRule::kPromote, DTypeClass::kNumeric, ExpandEinsum,
      "The sum of products that an equation such as \"bij,bjk->bik\" names, as NumPy's einsum: "
      "letters repeated, left out and \"...\" included. Contracted in the cheapest order");
  row.attributes = {RequiredString("equation")};
  row.shape_rule = kEinsumShape;
  return {std::move(row)};
}

}  // namespace kiln::ops
