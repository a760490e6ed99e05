// Contractions in tiles: a block of threads has a tile of the result, each thread a few rows and
// columns of it, and the factors stand in shared memory for some steps of the sum at a time.
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
  // Of factor 0 and of factor 1: the axis whose places a tile has, and how many; how many of these
  // a thread has.
  int axis[2] = {-1, -1};
  int64_t places[2] = {1, 1};
  int64_t per_thread[2] = {1, 1};
  // The sum's axis that is cut into steps.
  int sum_axis = -1;
  int64_t steps = 1;
  bool ahead = false;  // staged while the steps before are added up

  int64_t threads() const { return places[0] / per_thread[0] * (places[1] / per_thread[1]); }
};

// Nothing if the stage is no contraction, or too small in one direction to gain by tiles.
// `parallel` and `reduce` are the stage's axes, after fusing.
std::optional<BlockTile> FindBlockTile(const kernel::Stage& stage, const ScheduleWriter& writer,
                                       const std::vector<int>& parallel,
                                       const std::vector<int>& reduce,
                                       const drivers::Target& target);

// The stage's directives.
void WriteBlockTile(int stage, const BlockTile& tile, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_BLOCK_TILE_H_
