// Converts a tensor-level node at given indices to a kernel-level scalar expression.
#ifndef KILN_COMPILER_KERNEL_EXPRESSION_H_
#define KILN_COMPILER_KERNEL_EXPRESSION_H_

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/index.h"

namespace kiln::kernel {

// One element of a tensor: an index per dimension, in bounds where `valid` holds.
struct Point {
  std::vector<const ir::Node*> index;
  Validity valid;
};

// The way in which an expression obtains a node's value.
struct Source {
  enum class Kind {
    kInline,    // compute it: continue with the node's operands
    kMemory,    // load from `buffer` at the flattened index, zero where the point is not valid
    kComputed,  // `value` is the node at this point
  };
  Kind kind = Kind::kInline;
  int buffer = -1;
  const ir::Node* index = nullptr;  // kMemory
  int64_t elements = 0;             // kMemory: size of the buffer
  const ir::Node* value = nullptr;  // kComputed
};

// Called for every node that an expression reaches.
using FindSource = std::function<absl::StatusOr<Source>(const ir::Node* node, const Point& point)>;
// Returns whether the node is read from memory, at any point.
using IsStored = std::function<bool(const ir::Node* node)>;

// Memoises, so that a node read twice at one point is computed once.
class ExpressionLowerer {
 public:
  ExpressionLowerer(IndexMath& math, FindSource find, IsStored is_stored)
      : math_(math), find_(std::move(find)), is_stored_(std::move(is_stored)) {}

  // Returns the element of operand 0 that a gather or scatter (node) reads or writes at `point` of
  // its index.
  absl::StatusOr<Point> IndexedPoint(const ir::Node* node, int64_t axis, const Point& point);

  // UNIMPLEMENTED: the op has no scalar form. INTERNAL: a reduction that is not a source.
  absl::StatusOr<const ir::Node*> Lower(const ir::Node* node, const Point& point);
  // Lowers the terms of a sum over these ranges. Unlike in Lower, the factors of contractions may
  // be guarded separately.
  absl::StatusOr<const ir::Node*> LowerSummed(const ir::Node* node, const Point& point,
                                              const std::vector<const ir::Node*>& ranges);

  // Forgets all results. Call it when `find` begins to answer differently.
  void Clear();

 private:
  using Key = std::pair<const ir::Node*, std::vector<const ir::Node*>>;

  absl::StatusOr<const ir::Node*> LowerUncached(const ir::Node* node, const Point& point);
  absl::StatusOr<const ir::Node*> LowerElementwise(const ir::Node* node, const Point& point);
  // Lowers a product that is a term of a sum. The product is zero where one factor is, so the other
  // factor needs no guard if its loads stay in bounds without one. An infinity or NaN in that
  // factor would give NaN, so the product itself is guarded, except in a contraction. There the
  // guard would prevent a convolution with padding from packing its weights once, and weights that
  // are not finite have already spoilt its forward pass. A schedule may skip such terms, which then
  // add nothing (schedule/directives/skip.h). Returns null if neither factor can do without its
  // guard.
  absl::StatusOr<const ir::Node*> LowerGuardedProduct(const ir::Node* node, const Point& point);
  using Ranges = std::vector<const ir::Node*>;
  // Returns the ranges that each factor depends on.
  absl::StatusOr<std::array<Ranges, 2>> FactorRanges(const ir::Node* product, const Point& point);
  // Returns whether both factors depend on a range that is summed, and each on another range that
  // the other does not depend on: a matrix product, a convolution, or a gradient of one.
  bool IsContraction(const std::array<Ranges, 2>& factors) const;
  // Guards each factor only by the conditions on ranges that it depends on. For example, in the
  // gradient of a strided convolution, a condition on an element's position in the weights does not
  // apply to the upstream gradient.
  absl::StatusOr<const ir::Node*> LowerSharedGuards(const ir::Node* node, const Point& point,
                                                    const std::array<Ranges, 2>& factors);
  absl::StatusOr<const ir::Node*> LowerGather(const ir::Node* node, const Point& point);
  // Lowers the node's operand 0 at `inner`; zero where `inner` is not valid but `outer` is.
  absl::StatusOr<const ir::Node*> LowerGuarded(const ir::Node* node, const Point& outer,
                                               Point inner);
  const ir::Node* ZeroUnless(const ir::Node* condition, const ir::Node* value);
  bool IsZeroWhereInvalid(const ir::Node* node);

  IndexMath& math_;
  FindSource find_;
  IsStored is_stored_;
  absl::flat_hash_map<Key, const ir::Node*> memo_;
  absl::flat_hash_map<const ir::Node*, bool> zero_where_invalid_;
  int unproved_ = 0;  // loads that got an additional condition
  Ranges summed_;     // ranges of the sum whose terms are lowered
};

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_EXPRESSION_H_
