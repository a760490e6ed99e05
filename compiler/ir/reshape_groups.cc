#include "compiler/ir/reshape_groups.h"

#include "proto/check/check.h"

namespace kiln::ir {

std::vector<ReshapeGroup> ReshapeGroups(const Shape& from, const Shape& to) {
  // The side with the smaller product takes its next dimension.
  std::vector<ReshapeGroup> groups;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    ReshapeGroup group{i, i, j, j};
    int64_t a = 1;
    int64_t b = 1;
    do {
      if (j == to.size() || (i < from.size() && a <= b)) {
        a *= from[i++];
      } else {
        b *= to[j++];
      }
    } while (a != b && (i < from.size() || j < to.size()));
    KILN_CHECK_EQ(a, b) << "the shapes have different numbers of elements";
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace kiln::ir
