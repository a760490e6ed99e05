// Contractions in tiles: a block of threads computes a tile of the result, each thread a few rows
// and columns of it. The factors are in shared memory, for some steps of the sum at a time.
#ifndef KILN_COMPILER_SEARCH_BLOCK_TILE_H_
#define KILN_COMPILER_SEARCH_BLOCK_TILE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/contraction.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

struct BlockTile {
  Contraction contraction;
  // For factor 0 and factor 1: the axis along which tiles are cut, the tile's size, and how much of
  // it one thread has.
  int axis[2] = {-1, -1};
  int64_t places[2] = {1, 1};
  int64_t per_thread[2] = {1, 1};
  // The axis of the sum that is cut into steps.
  int sum_axis = -1;
  int64_t steps = 1;
  bool ahead = false;  // staged while the previous steps are added up

  int64_t threads() const { return places[0] / per_thread[0] * (places[1] / per_thread[1]); }
};

// Returns nullopt if the stage is not a contraction, or is too small in one direction to gain from
// tiles. `parallel` and `reduce` are the stage's axes, after fusing.
std::optional<BlockTile> FindBlockTile(const kernel::Stage& stage, const ScheduleWriter& writer,
                                       const std::vector<int>& parallel,
                                       const std::vector<int>& reduce,
                                       const drivers::Target& target);

// Writes the stage's directives.
void WriteBlockTile(int stage, const BlockTile& tile, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_BLOCK_TILE_H_
