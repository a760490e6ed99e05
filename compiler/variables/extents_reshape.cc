// The part of Extents that regroups dimensions.
#include <algorithm>
#include <map>
#include <utility>

#include "compiler/variables/extents.h"

namespace kiln::variables {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

// Returns whether only the outermost dimension varies. Then strides do not vary, and elements have
// the same positions at capacity as in the true shape.
bool VariesOutermost(Dims dims) {
  bool outermost = true;
  for (const Affine& size : dims) {
    if (!size.is_fixed() && !outermost) return false;
    outermost = outermost && size == Fixed(1);
  }
  return true;
}

// A product of sizes, as a polynomial: coefficients by the variables that are multiplied, in order.
// A quotient counts as a variable.
class Product {
 public:
  explicit Product(absl::Span<const Derived> derived, size_t variables)
      : derived_(derived), variables_(static_cast<int>(variables)) {}

  void Multiply(const Affine& size) {
    std::map<std::vector<int>, Coefficient> product;
    for (const auto& [factors, coefficient] : terms_) {
      product[factors] += coefficient * size.constant;
      for (size_t i = 0; i < size.coefficients.size(); ++i) {
        product[With(factors, static_cast<int>(i))] += coefficient * size.coefficients[i];
      }
    }
    std::erase_if(product, [](const auto& term) { return term.second == 0; });
    terms_ = std::move(product);
  }
  bool operator==(const Product& other) const { return terms_ == other.terms_; }

 private:
  using Coefficient = __int128;

  std::vector<int> With(std::vector<int> factors, int variable) const {
    const Derived* derived = variable < variables_ ? nullptr : &derived_[variable - variables_];
    if (derived != nullptr && derived->kind == Derived::Kind::kProduct) {
      factors.push_back(derived->left);
      factors.push_back(derived->right);
    } else {
      factors.push_back(variable);
    }
    std::sort(factors.begin(), factors.end());
    return factors;
  }

  absl::Span<const Derived> derived_;
  int variables_;
  std::map<std::vector<int>, Coefficient> terms_ = {{{}, 1}};
};

// Dimensions [from_begin, from_end) hold the same elements as [to_begin, to_end).
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

// Returns the smallest groups. `one` is the product of no sizes; `middle` is a set of values at
// which sizes are compared, to choose the side that takes the next dimension.
std::vector<Group> GroupsOf(Dims from, Dims to, const Product& one,
                            absl::Span<const int64_t> middle) {
  std::vector<Group> groups;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    Group group{i, i, j, j};
    Product have = one;
    Product want = one;
    double have_size = 1;
    double want_size = 1;
    const auto take = [&](Product& product, double& size, const Affine& next) {
      product.Multiply(next);
      size *= static_cast<double>(std::max<int64_t>(1, At(next, middle)));
    };
    if (i < from.size()) take(have, have_size, from[i++]);
    if (j < to.size()) take(want, want_size, to[j++]);
    // Compares the products as formulas: sizes that are equal at one value may differ at another.
    while (!(have == want) && (i < from.size() || j < to.size())) {
      if (j == to.size() || (have_size < want_size && i < from.size())) {
        take(have, have_size, from[i++]);
      } else {
        take(want, want_size, to[j++]);
      }
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

// Returns a size to divide by; an empty dimension has no elements, so any divisor will do.
const Node* Extents::Size(const Affine& size) {
  const Node* scalar = Scalar(size);
  if (Least(size, variables_) >= 1) return scalar;
  return b_.Binary(Op::kMax, scalar, b_.ConstInt(DType::kInt64, 1));
}

// Returns, for every element at capacity, its position in the row-major order of the true shape.
const Node* Extents::PackedIndex(Dims dims) {
  const Node* index = b_.ConstInt(DType::kInt64, 0);
  const Node* step = b_.ConstInt(DType::kInt64, 1);
  for (size_t i = dims.size(); i-- > 0;) {
    index = b_.Add(index, b_.Mul(Index(Capacity(dims[i]), i, dims.size()), step));
    step = b_.Mul(step, Scalar(dims[i]));
  }
  return index;
}

// Returns, for positions in the row-major order of the true shape, the positions at capacity.
const Node* Extents::CapacityIndex(const Node* packed, Dims dims) {
  const Node* index = b_.ConstInt(DType::kInt64, 0);
  const Node* rest = packed;
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const Node* size = Size(dims[i]);
    const Node* digit = i == 0 ? rest : b_.Binary(Op::kMod, rest, size);
    index = b_.Add(index, b_.Mul(digit, b_.ConstInt(DType::kInt64, step)));
    if (i > 0) rest = b_.Binary(Op::kIDiv, rest, size);
    step *= Capacity(dims[i]);
  }
  return index;
}

const Node* Extents::FromPacked(const Node* packed, Dims dims) {
  if (VariesOutermost(dims)) return b_.Reshape(packed, Capacity(dims));
  return b_.Gather(packed, PackedIndex(dims), 0);
}

const Node* Extents::ToPacked(const Node* x, Dims dims) {
  const ir::Shape flat = {ir::NumElements(x->shape())};
  if (VariesOutermost(dims)) return b_.Reshape(x, flat);
  return b_.Gather(b_.Reshape(x, flat), CapacityIndex(Index(flat[0], 0, 1), dims), 0);
}

const Node* Extents::Reshaped(const Node* x, Dims from, Dims to) {
  const ir::Shape shape = Capacity(to);
  // If a capacity has no elements, no values of the variables give any.
  if (ir::NumElements(x->shape()) == 0 || ir::NumElements(shape) == 0) {
    return b_.Full(x->dtype(), shape, 0);
  }
  std::vector<int64_t> middle;
  const size_t count = variables_.size() - derived_.size();
  for (const graph::Variable& variable : absl::MakeSpan(variables_).first(count)) {
    middle.push_back(variable.min + (variable.max - variable.min) / 2);
  }
  const std::vector<Group> groups =
      GroupsOf(from, to, Product(derived_, count), WithDerived(middle, derived_));
  ir::Shape grouped;
  for (const Group& group : groups) {
    grouped.push_back(ir::NumElements(
        Capacity(from.subspan(group.from_begin, group.from_end - group.from_begin))));
  }
  const Node* result = b_.Reshape(x, grouped);
  for (size_t i = groups.size(); i-- > 0;) {
    const Dims old = from.subspan(groups[i].from_begin, groups[i].from_end - groups[i].from_begin);
    const Dims made = to.subspan(groups[i].to_begin, groups[i].to_end - groups[i].to_begin);
    // Elements have the same positions as in the true shape on both sides, so the plain reshape is
    // right.
    if (VariesOutermost(old) && VariesOutermost(made)) continue;
    // Goes through the row-major order of the true shapes, which a reshape preserves.
    result = b_.Gather(result, CapacityIndex(PackedIndex(made), old), static_cast<int64_t>(i));
  }
  return b_.Reshape(result, shape);
}

}  // namespace kiln::variables
