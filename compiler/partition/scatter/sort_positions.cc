#include "compiler/partition/scatter/sort_positions.h"

#include <algorithm>
#include <bit>

namespace kiln::partition {

using ir::DType;
using ir::Node;
using ir::Op;

namespace {

constexpr int64_t kRun = 512;
constexpr int kHalfOfKey = 32;

const Node* Int(ops::Builder& b, int64_t value) { return b.ConstInt(DType::kInt64, value); }
const Node* And(ops::Builder& b, const Node* x, const Node* y) { return b.Binary(Op::kAnd, x, y); }
const Node* Or(ops::Builder& b, const Node* x, const Node* y) { return b.Binary(Op::kOr, x, y); }

// One run, or a power of two of them.
int64_t SortedLength(int64_t positions) {
  if (positions <= kRun) return positions;
  const auto runs = static_cast<uint64_t>((positions + kRun - 1) / kRun);
  return kRun * static_cast<int64_t>(std::bit_ceil(runs));
}

// All keys differ, so their order is unique.
const Node* MakeKeys(ops::Builder& b, const Node* index, int64_t destinations) {
  const int64_t positions = index->shape()[1];
  const int64_t length = SortedLength(positions);
  const Node* padded = b.Pad(index, {0, 0, 0, length - positions});
  const Node* position = b.Iota(DType::kInt64, {1, length}, 1);
  const Node* inside = And(b, b.Less(Int(b, -1), padded), b.Less(padded, Int(b, destinations)));
  inside = And(b, inside, b.Less(position, Int(b, positions)));
  const Node* destination = b.Where(inside, padded, Int(b, destinations));
  return b.Contiguous(Or(b, b.Binary(Op::kShl, destination, Int(b, kHalfOfKey)), position));
}

// Sorts each row of (runs, length): a key's position is the number of smaller keys.
const Node* SortRuns(ops::Builder& b, const Node* keys) {
  const int64_t runs = keys->shape()[0];
  const int64_t length = keys->shape()[1];
  const Node* mine = b.Reshape(keys, {runs, length, 1});
  const Node* others = b.Reshape(keys, {runs, 1, length});
  const Node* rank = b.Sum(b.Cast(b.Less(others, mine), DType::kInt32), {2});
  const Node* place = b.Iota(DType::kInt32, {1, length, 1}, 1);
  const Node* here = b.Equal(b.Reshape(rank, {runs, 1, length}), place);
  return b.Sum(b.Where(here, others, Int(b, 0)), {2});
}

// Merges each pair of sorted runs of (pairs, 2, length).
const Node* MergeRuns(ops::Builder& b, const Node* keys) {
  const int64_t pairs = keys->shape()[0];
  const int64_t length = keys->shape()[2];
  const auto run = [&](int64_t which) {
    return b.Reshape(b.Slice(keys, 1, which, which + 1), {pairs, length});
  };
  const Node* first = run(0);
  const Node* second = run(1);
  const Node* place = b.Iota(DType::kInt64, {1, 2 * length}, 1);
  const Node* all = b.Expand(place, {pairs, 2 * length});
  // At least this many of the preceding elements come from the first run, since the second has only
  // `length`.
  const Node* used_up = b.Sub(place, Int(b, length));
  // The number of preceding elements from the first run, bit by bit.
  const Node* taken = b.Expand(b.Reshape(Int(b, 0), {1, 1}), {pairs, 2 * length});
  for (int64_t step = length; step > 0; step /= 2) {
    const Node* more = b.Add(taken, Int(b, step));
    const Node* possible =
        And(b, b.Less(more, Int(b, length + 1)), b.Less(more, b.Add(place, Int(b, 1))));
    const Node* last = b.GatherElements(first, b.Sub(more, Int(b, 1)), 1);
    const Node* next = b.GatherElements(second, b.Sub(all, more), 1);
    const Node* before = Or(b, b.Less(more, b.Add(used_up, Int(b, 1))), b.Less(last, next));
    taken = b.Where(And(b, possible, before), more, taken);
  }
  const Node* mine = b.GatherElements(first, taken, 1);
  const Node* other = b.GatherElements(second, b.Sub(all, taken), 1);
  const Node* is_mine = And(b, b.Less(taken, Int(b, length)),
                            Or(b, b.Less(taken, b.Add(used_up, Int(b, 1))), b.Less(mine, other)));
  return b.Contiguous(b.Where(is_mine, mine, other));
}

}  // namespace

const Node* SortPositions(ops::Builder& b, const Node* index, int64_t destinations) {
  const Node* keys = MakeKeys(b, index, destinations);
  const int64_t lines = keys->shape()[0];
  const int64_t length = keys->shape()[1];
  int64_t run = std::min(length, kRun);
  keys = SortRuns(b, b.Reshape(keys, {lines * (length / run), run}));
  for (; run < length; run *= 2) {
    keys = MergeRuns(b, b.Reshape(keys, {lines * length / (2 * run), 2, run}));
  }
  return b.Reshape(keys, {lines, length});
}

const Node* DestinationOf(ops::Builder& b, const Node* key) {
  return b.Binary(Op::kShr, key, Int(b, kHalfOfKey));
}

const Node* PositionOf(ops::Builder& b, const Node* key) {
  return And(b, key, Int(b, (int64_t{1} << kHalfOfKey) - 1));
}

const Node* FindBegins(ops::Builder& b, const Node* keys, int64_t destinations) {
  const int64_t lines = keys->shape()[0];
  const int64_t length = keys->shape()[1];
  const Node* destination = b.Iota(DType::kInt64, {1, destinations + 1}, 1);
  const Node* lowest_key = b.Binary(Op::kShl, destination, Int(b, kHalfOfKey));
  const Node* found = b.Expand(b.Reshape(Int(b, 0), {1, 1}), {lines, destinations + 1});
  for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length))); step > 0;
       step /= 2) {
    const Node* more = b.Add(found, Int(b, step));
    const Node* last = b.GatherElements(keys, b.Sub(more, Int(b, 1)), 1);
    const Node* below = And(b, b.Less(more, Int(b, length + 1)), b.Less(last, lowest_key));
    found = b.Where(below, more, found);
  }
  return b.Contiguous(found);
}

}  // namespace kiln::partition
