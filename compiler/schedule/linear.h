// Integer expressions as sums: constant + Σ coefficient * atom, where an atom is a range or
// anything that is not a sum.
#ifndef KILN_COMPILER_SCHEDULE_LINEAR_H_
#define KILN_COMPILER_SCHEDULE_LINEAR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::schedule {

struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<const ir::Node*, int64_t>> terms;  // sorted by node id; no zero coefficient

  // 0 if `atom` is no term.
  int64_t Coefficient(const ir::Node* atom) const;
};

// Of an int64 node. Always succeeds: at worst the node itself is the only term.
Linear Linearise(const ir::Node* node);

// The largest int64 sums inside `root`: every Linear from which an index, a condition or a nested
// atom is made. Appends.
void CollectLinears(const ir::Node* root, std::vector<Linear>* out);

bool DependsOn(const ir::Node* root, const ir::Node* range);

// Least and greatest value of an int64 node over all values of its ranges; the whole of int64 where
// nothing is known.
struct Interval {
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
  bool operator==(const Interval&) const = default;
};
Interval BoundsOf(const ir::Node* node);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_LINEAR_H_
