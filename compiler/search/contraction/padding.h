// Terms of a contraction that are zero because a factor is read under a condition, such as the
// padding of a convolution: how many of them a schedule leaves out (schedule/directives/skip.h).
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_PADDING_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_PADDING_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"

namespace kiln::search {

// Returns the share of the points of their ranges at which all of these conditions hold; 1 if it is
// not known.
double HeldShare(absl::Span<const ir::Node* const> conditions);

class Padding {
 public:
  explicit Padding(const kernel::Stage& stage);

  // Returns the share of the terms that are computed if each condition is tested that does not
  // depend on the ranges of `tile`.
  double ComputedShare(absl::Span<const ir::Node* const> tile) const;
  // Returns whether such a condition depends on the range.
  bool IsTested(const ir::Node* range, absl::Span<const ir::Node* const> tile) const;
  // Returns whether the factor is a load at an index without division whose conditions are all
  // tested: where it is read, it is read in place.
  bool ReadsInPlace(const ir::Node* factor, absl::Span<const ir::Node* const> tile) const;

 private:
  // A condition, and the ranges that it depends on.
  struct Condition {
    const ir::Node* node = nullptr;
    std::vector<const ir::Node*> ranges;
  };
  static bool IsKnown(const Condition& condition, absl::Span<const ir::Node* const> tile);

  std::vector<Condition> conditions_;
  // By the conditions that are tested, a bit each.
  mutable absl::flat_hash_map<uint64_t, double> shares_;
};

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_PADDING_H_
