// Sorting by K. E. Batcher's bitonic network ("Sorting networks and their applications", 1968):
// log²(n) / 2 rounds. In each, every element is compared with one partner, which does not depend on
// the values. A round is one elementwise kernel over the whole tensor, and rounds of one distance
// share its code. On devices whose thread blocks share memory, one kernel has all rounds whose
// partners are close together (partition/cluster/tile.h).
#include "compiler/ops/composites/sort_network.h"

#include <bit>

#include "compiler/ops/composites/composite.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

// Returns (outer, length, inner) as pairs of halves: (outer, pairs, 2, half, inner).
const Node* InPairs(Builder& b, const Node* x, int64_t half) {
  const Shape& shape = x->shape();
  return b.Reshape(x, {shape[0], shape[1] / (2 * half), 2, half, shape[2]});
}

// Elements of a round that take as long as starting its kernel.
constexpr double kRoundStart = 16 << 10;

// Returns which of two elements comes first, by key and then by position.
const Node* IsBefore(Builder& b, const SortKeys& x, const SortKeys& y) {
  const Node* before = b.Less(x.key, y.key);
  if (x.position == nullptr) return before;
  const Node* tie = b.Binary(Op::kAnd, b.Equal(x.key, y.key), b.Less(x.position, y.position));
  return b.Binary(Op::kOr, before, tie);
}

// Every element of a first half becomes the smaller of itself and its partner, every element of a
// second half the larger. The partner is `half` away, or, if `mirrored`, at the mirrored position
// in the other half: that turns two sorted halves into two bitonic ones, with all elements of the
// first before those of the second.
SortKeys Round(Builder& b, const SortKeys& keys, int64_t half, bool mirrored) {
  const std::vector<int64_t> axes = mirrored ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{2};
  const Node* is_second = b.Cast(b.Iota(DType::kInt32, {1, 1, 2, 1, 1}, 2), DType::kBool);
  // Each round's result is materialised: inlined into the next round, which reads every element
  // twice, it would be computed twice as often, and so on.
  const auto back = [&](const Node* x) { return b.Contiguous(b.Reshape(x, keys.key->shape())); };
  const Node* mine = InPairs(b, keys.key, half);
  const Node* theirs = b.Flip(mine, axes);
  if (keys.position == nullptr) {
    return {back(b.Where(is_second, b.Binary(Op::kMax, mine, theirs),
                         b.Binary(Op::kMin, mine, theirs))),
            nullptr};
  }
  const Node* my_position = InPairs(b, keys.position, half);
  const Node* their_position = b.Flip(my_position, axes);
  const Node* theirs_first = IsBefore(b, {theirs, their_position}, {mine, my_position});
  const Node* mine_first = IsBefore(b, {mine, my_position}, {theirs, their_position});
  const Node* swap = b.Where(is_second, mine_first, theirs_first);
  return {back(b.Where(swap, theirs, mine)), back(b.Where(swap, their_position, my_position))};
}

// Sorts bitonic runs of `run` elements.
SortKeys Merge(Builder& b, SortKeys keys, int64_t run) {
  for (int64_t half = run / 2; half >= 1; half /= 2) keys = Round(b, keys, half, false);
  return keys;
}

// Sorts all runs of `run` elements; `run` is a power of two.
SortKeys SortRuns(Builder& b, SortKeys keys, int64_t run) {
  for (int64_t half = 1; half < run; half *= 2) {
    keys = Merge(b, Round(b, keys, half, true), half);
  }
  return keys;
}

// Keeps, of each pair of sorted runs, the first `run` elements of both together: the smaller of
// each element and its mirror image. They form a bitonic run.
SortKeys DropLarger(Builder& b, const SortKeys& keys, int64_t run) {
  const SortKeys rounded = Round(b, keys, run, true);
  const auto first = [&](const Node* x) -> const Node* {
    if (x == nullptr) return nullptr;
    const Shape& shape = x->shape();
    const Node* halves = b.Slice(InPairs(b, x, run), 2, 0, 1);
    return b.Reshape(halves, {shape[0], shape[1] / 2, shape[2]});
  };
  return {first(rounded.key), first(rounded.position)};
}

}  // namespace

SortKeys FirstInOrder(Builder& b, const SortKeys& keys, int64_t count) {
  if (count == 1) return Lowest(b, keys, 1);
  const int64_t length = keys.key->shape()[1];
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  const auto run = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  SortKeys sorted = SortRuns(b, PadSortKeys(b, keys, padded), run);
  for (int64_t left = padded; left > run; left /= 2) {
    sorted = Merge(b, DropLarger(b, sorted, run), run);
  }
  return SliceSortKeys(b, sorted, count);
}

double NetworkCost(int64_t columns, int64_t length, int64_t count) {
  const auto round = [&](int64_t elements) {
    return static_cast<double>(columns) * static_cast<double>(elements) + kRoundStart;
  };
  if (count == 1) return round(length);
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  const auto run = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  const int merges = std::countr_zero(static_cast<uint64_t>(run));
  double cost = merges * (merges + 1) / 2 * round(padded);
  for (int64_t left = padded; left > run; left /= 2) cost += round(left) + merges * round(left / 2);
  return cost;
}

}  // namespace kiln::ops
