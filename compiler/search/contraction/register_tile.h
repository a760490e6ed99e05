// Register tiles for contractions: how many vectors of lanes by how many rows of the other factor
// are added up at once.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_REGISTER_TILE_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_REGISTER_TILE_H_

#include <cstdint>
#include <vector>

#include "drivers/interface/target.h"

namespace kiln::search {

struct RegisterTile {
  int vectors = 1;        // along the lane axis
  int64_t rows = 1;       // along the row axis
  int64_t more_rows = 1;  // along a second row axis
  double cycles = 0;      // estimate for one step of the sum over all rows and vectors
};

// Returns the best tile of at most `vectors_max` vectors for a lane axis of `lane_vectors`
// vectors, `rows` rows and `more_rows` rows along a second axis (1: none). The accumulators, the
// vectors of one factor and a few spare registers fit the target. The model: a step takes as long
// as the longest of its multiply-adds, its loads and one multiply-add's latency, plus a part of the
// overlapping work. Ragged ends are counted exactly.
RegisterTile ChooseTile(int64_t lane_vectors, int vectors_max, int64_t rows, int64_t more_rows,
                        const drivers::Target& target);

// Returns the model's cycles for one step of the sum over all rows and vectors with this tile.
double TileCycles(const RegisterTile& tile, int64_t lane_vectors, int64_t rows, int64_t more_rows,
                  const drivers::Target& target);

// Returns whether the tile's sums and operands fit the target's registers.
bool FitsRegisters(const RegisterTile& tile, const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_REGISTER_TILE_H_
