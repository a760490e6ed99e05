#include "compiler/partition/normalize/shrink_contraction.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/partition/contraction.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

using Bounds = std::vector<int64_t>;  // begin and end of each dimension

// Maps the bounds to a shape that differs by dimensions of size 1.
std::optional<Bounds> BoundsOf(const ir::Shape& from, const Bounds& bounds, const ir::Shape& to) {
  Bounds mapped;
  size_t next = 0;
  auto skip_ones = [&] {
    while (next < from.size() && from[next] == 1) ++next;
  };
  for (const int64_t size : to) {
    if (size == 1) {
      mapped.insert(mapped.end(), {0, 1});
      continue;
    }
    skip_ones();
    if (next == from.size() || from[next] != size) return std::nullopt;
    mapped.insert(mapped.end(), {bounds[2 * next], bounds[2 * next + 1]});
    ++next;
  }
  skip_ones();
  return next == from.size() ? std::optional(std::move(mapped)) : std::nullopt;
}

}  // namespace

const Node* ShrinkContraction(ir::Context& context, const Node* shrink,
                              const std::function<bool(const Node*)>& single_use) {
  if (shrink->op() != Op::kShrink) return nullptr;
  const Node* sum = shrink->operand(0);
  while (sum->op() == Op::kReshape && single_use(sum)) sum = sum->operand(0);
  // If it had other uses, the whole would be computed in addition to the part.
  if (!single_use(sum) || !IsContraction(sum)) return nullptr;
  std::optional<Bounds> bounds =
      BoundsOf(shrink->operand(0)->shape(), ir::IntsOf(shrink), sum->shape());
  if (!bounds.has_value()) return nullptr;
  const Node* terms = sum->operand(0);
  // The sum has size 1 along the summed axes, but needs all of their terms.
  for (const int64_t axis : ir::IntsOf(sum)) (*bounds)[2 * axis + 1] = terms->shape()[axis];
  TensorMaker make(context);
  return make.Reshape(make.Reduce(Op::kReduceSum, make.Shrink(terms, *bounds), ir::IntsOf(sum)),
                      shrink->shape());
}

}  // namespace kiln::partition
