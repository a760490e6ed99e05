// Contractions on matrix units: a block of threads computes a tile of the result, and each subgroup
// of 32 threads a part of it, made of the 16 by 8 sums of single instructions
// (schedule/plan_matrix.h). The factors are in shared memory, for some terms of the sum at a time,
// and are copied in vectors of 16 bytes.
#ifndef KILN_COMPILER_SEARCH_MATRIX_TILE_H_
#define KILN_COMPILER_SEARCH_MATRIX_TILE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/contraction.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

struct MatrixTile {
  Contraction contraction;
  // The factor (0 or 1) that has the rows of the tile; the other one has the columns.
  int row_factor = 0;
  // For rows and columns: the axis, its extent padded to whole tiles, and how many a block and a
  // subgroup have.
  int axis[2] = {-1, -1};
  int64_t padded[2] = {1, 1};
  int64_t places[2] = {1, 1};
  int64_t per_subgroup[2] = {1, 1};
  // For rows and columns: the layout of the factor in shared memory.
  std::vector<schedule::StageOperand::Dimension> layout[2];
  int terms_axis = -1;
  int64_t padded_terms = 1;
  int64_t staged_terms = 1;
  bool ahead = false;  // staged while the previous terms are added up
  // Terms of an instruction, and lanes of a copy.
  int64_t terms = 16;
  int lanes = 1;

  int64_t threads() const {
    return places[0] / per_subgroup[0] * (places[1] / per_subgroup[1]) * 32;
  }
};

// Returns nullopt if the target has no matrix units, or if the stage is not a contraction of types
// that they support. Sizes that are not multiples of a tile are padded. `parallel` and `reduce` are
// the stage's axes, after fusing.
std::optional<MatrixTile> FindMatrixTile(const kernel::Stage& stage, const ScheduleWriter& writer,
                                         const std::vector<int>& parallel,
                                         const std::vector<int>& reduce,
                                         const drivers::Target& target);

// Writes the stage's directives.
void WriteMatrixTile(int stage, const MatrixTile& tile, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_MATRIX_TILE_H_
