// The tile of a contraction on matrix units: how the heuristic chooses it. forms/matrix.h has its
// knobs.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_MATRIX_TILE_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_MATRIX_TILE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule/directives/stage_operand.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

// Rows and columns of an instruction. matrix/plan.h says how a subgroup's threads split them.
inline constexpr int64_t kInstruction[2] = {16, 8};
inline constexpr int64_t kSubgroup = 32;
// The largest part of a tile for one subgroup: a thread holds 4 sums of each instruction.
inline constexpr int64_t kPerSubgroupMax[2] = {64, 32};
// Smaller tiles read more than they compute.
inline constexpr int64_t kMatrixPlacesMin[2] = {16, 8};

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
  bool columns_first = false;  // of the tasks

  int64_t threads() const {
    return places[0] / per_subgroup[0] * (places[1] / per_subgroup[1]) * kSubgroup;
  }
};

// Returns the stage as a contraction, or nullopt if the target has no matrix units or they do not
// support its types.
std::optional<Contraction> MatrixContraction(const StageView& view);

// Returns the type in which the unit takes the factor, or kInvalid if it cannot.
ir::DType UnitDType(const ir::Node* factor);

// Returns the heuristic's tile. If `leading` is not null, its rows are along that range.
std::optional<MatrixTile> FindMatrixTile(const StageView& view, const int64_t* leading);

// Returns the tile of legal values, without its layouts. Requires: MatrixContraction.
MatrixTile MatrixTileOf(const StageView& view, const Values& values);

// Chooses the layouts of the factors.
void LayOut(const ScheduleWriter& axes, MatrixTile* tile);

// Returns whether the factor only converts a loaded value, so that the unit gets zeros where
// nothing is read.
bool IsLoaded(const ir::Node* factor);

int FactorOf(const MatrixTile& tile, int side);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_MATRIX_TILE_H_
