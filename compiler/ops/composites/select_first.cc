#include "compiler/ops/composites/select_first.h"

#include <bit>
#include <limits>
#include <utility>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/sort_keys.h"
#include "compiler/ops/composites/sort_network.h"
#include "proto/check/check.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

constexpr int kLevelsMax = 8;
// Instead of a product that int64 cannot hold.
constexpr int64_t kTooLong = std::numeric_limits<int64_t>::max();
// The times to compare an element with its block's lowest, and to read a candidate from its place,
// in the time of one element in one round of the sorting network.
constexpr double kLowestCost = 0.5;
constexpr double kCandidateCost = 12;
// Selection must be this much faster than the sorting network to be chosen.
constexpr double kGainMin = 2;

double CostOf(const BlockLevels& levels, int64_t columns, int64_t count) {
  const auto size = static_cast<double>(columns);
  const int64_t candidates = count * levels.ratio;
  double cost = NetworkCost(columns, levels.lengths.back(), count);
  for (size_t i = 0; i + 1 < levels.lengths.size(); ++i) {
    cost += kLowestCost * size * static_cast<double>(levels.lengths[i]);
    cost += kCandidateCost * size * static_cast<double>(candidates);
    cost += NetworkCost(columns, candidates, count);
  }
  return cost;
}

// Returns the places, in a level, of the elements of the blocks that contain the given positions.
const Node* PlacesInBlocks(Builder& b, const Node* positions, int64_t blocks, int64_t ratio) {
  const ir::Shape& shape = positions->shape();
  const Node* step = b.ConstInt(DType::kInt64, blocks);
  const Node* block =
      b.Reshape(b.Binary(Op::kMod, positions, step), {shape[0], shape[1], 1, shape[2]});
  const Node* offset = b.Binary(Op::kMul, b.Iota(DType::kInt64, {1, 1, ratio, 1}, 2), step);
  return b.Reshape(b.Add(block, offset), {shape[0], shape[1] * ratio, shape[2]});
}

// Both are read several times.
SortKeys Materialised(Builder& b, const SortKeys& keys) {
  return {b.Contiguous(keys.key), keys.position == nullptr ? nullptr : b.Contiguous(keys.position)};
}

SortKeys SelectFirst(Builder& b, const Node* x, const SizeRange& length, int64_t count,
                     bool descending, const BlockLevels& levels) {
  const std::vector<int64_t>& lengths = levels.lengths;
  std::vector<SortKeys> lowest = {MakeSortKeys(b, x, length, descending, lengths[0])};
  for (size_t i = 1; i < lengths.size(); ++i) {
    lowest.push_back(Materialised(b, Lowest(b, lowest.back(), lengths[i])));
  }
  SortKeys first = FirstInOrder(b, lowest.back(), count);
  for (size_t i = lengths.size() - 1; i-- > 0;) {
    const Node* places =
        b.Contiguous(PlacesInBlocks(b, PositionsOf(b, first), lengths[i + 1], levels.ratio));
    // Keys of level 0 are made again: it is large, and they are cheap.
    const SortKeys candidates = i == 0 ? SortKeysAt(b, x, descending, lengths[0], places)
                                       : GatherSortKeys(b, lowest[i], places);
    first = FirstInOrder(b, Materialised(b, candidates), count);
  }
  return first;
}

}  // namespace

BlockLevels MakeBlockLevels(int64_t length, int64_t ratio, int number) {
  KILN_CHECK_GE(ratio, 2);
  int64_t last = length;
  for (int i = 0; i < number; ++i) last = (last + ratio - 1) / ratio;
  BlockLevels levels{ratio, std::vector<int64_t>(number + 1)};
  levels.lengths[number] = last;
  for (int i = number; i-- > 0;) {
    int64_t& longer = levels.lengths[i];
    if (__builtin_mul_overflow(levels.lengths[i + 1], ratio, &longer)) longer = kTooLong;
  }
  return levels;
}

bool CanSelect(const BlockLevels& levels, int64_t length, int64_t count) {
  return levels.lengths[0] < kTooLong && levels.lengths.back() >= count &&
         (levels.lengths.size() < 2 || levels.lengths[1] <= length);
}

std::optional<BlockLevels> ChooseBlockLevels(int64_t columns, int64_t length, int64_t count) {
  std::optional<BlockLevels> best;
  // The lowest element needs no network.
  if (count == 1) return best;

  double least = NetworkCost(columns, length, count) / kGainMin;
  // Candidates fill a power of two, which the network needs.
  for (auto candidates = static_cast<int64_t>(2 * std::bit_ceil(static_cast<uint64_t>(count)));
       candidates < length; candidates *= 2) {
    for (int number = 1; number <= kLevelsMax; ++number) {
      BlockLevels levels = MakeBlockLevels(length, candidates / count, number);
      if (!CanSelect(levels, length, count)) break;
      const double cost = CostOf(levels, columns, count);
      if (cost >= least) continue;
      least = cost;
      best = std::move(levels);
    }
  }
  return best;
}

const Node* FirstPositions(Builder& b, const Node* x, const SizeRange& length, int64_t count,
                           bool descending, const std::optional<BlockLevels>& levels) {
  if (!levels.has_value()) {
    const SortKeys keys = MakeSortKeys(b, x, length, descending, length.most);
    return PositionsOf(b, FirstInOrder(b, keys, count));
  }
  KILN_CHECK(CanSelect(*levels, length.most, count)) << count << " of " << length.most;
  KILN_CHECK_LE(count, x->shape()[1]);
  return PositionsOf(b, SelectFirst(b, x, length, count, descending, *levels));
}

}  // namespace kiln::ops
