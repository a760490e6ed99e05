// The first elements in order, without sorting the others. Internal to compiler/ops.
//
// Selection by blocks, on several levels. The elements of level i+1 are the lowest ones of the
// blocks of level i. If a block's lowest element is not among the first `count` of its level, then
// those `count` elements, which are elements of level i, too, come before every element of the
// block. So the first `count` elements of level i are in the blocks whose lowest elements are the
// first `count` of level i+1: they are the first of these blocks' elements, the candidates. Keys
// contain positions, so there are no ties.
#ifndef KILN_COMPILER_OPS_COMPOSITES_SELECT_FIRST_H_
#define KILN_COMPILER_OPS_COMPOSITES_SELECT_FIRST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Each level has `ratio` times as many elements as the next one. Block j of a level whose next one
// has w elements contains the elements j + i * w: the lowest of neighbouring blocks are found at
// once. Level 0 is x, padded to the first length; the last level is sorted.
struct BlockLevels {
  int64_t ratio = 0;
  std::vector<int64_t> lengths;
};

// Returns `number` levels after level 0 for x of this length.
BlockLevels MakeBlockLevels(int64_t length, int64_t ratio, int number);

// Returns whether `count` elements can be selected: the last level has as many, and every block has
// an element that is no padding. Where fewer elements than `length` are real, as many blocks have
// one as are needed, and the other blocks come last.
bool CanSelect(const BlockLevels& levels, int64_t length, int64_t count);

// Returns the fastest levels for an axis of this length in `columns` tensors; nothing if sorting
// runs of `count` elements and merging them (sort_network.h) is as fast.
std::optional<BlockLevels> ChooseBlockLevels(int64_t columns, int64_t length, int64_t count);

// Returns the positions (int64) of the first `count` elements along axis 1 of (outer, length,
// inner), in the order of sort_keys.h. The form is the same for all lengths in the range, which
// contains x's; elements from x's length on are meaningless. Requires: 1 <= count <= length.most,
// no empty dimension, and levels that can select from length.most elements, if there are any; then
// also count <= x's length.
const ir::Node* FirstPositions(Builder& b, const ir::Node* x, const SizeRange& length,
                               int64_t count, bool descending,
                               const std::optional<BlockLevels>& levels);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_COMPOSITES_SELECT_FIRST_H_
