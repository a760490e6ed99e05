// The ways to map a contraction to lanes and rows, and the choice of the cheapest.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_

#include <cstdint>
#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/search/contraction.h"
#include "compiler/search/register_tile.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

struct ContractionWay {
  int packed = 0;  // the factor that is packed; the other one is broadcast
  int lanes = 1;   // of a vector
  int lane_axis = -1;
  int row_axis = -1;
  int more_row_axis = -1;
  bool stage_rows = false;  // the rows are not plain loads, so they are computed into scratch
  RegisterTile tile;
  int64_t row_chunks = 1;  // tasks that the rows are divided into
  double cycles = 0;       // until the last thread has finished

  // Returns the tile's rows along one of the row axes.
  int64_t TileOf(int axis) const {
    return axis == row_axis ? tile.rows : axis == more_row_axis ? tile.more_rows : 1;
  }
};

// Returns nullopt if there is too little work, or too few rows, to gain from panels.
std::optional<ContractionWay> ChooseWay(const kernel::Stage& stage, const Contraction& contraction,
                                        const drivers::Target& target,
                                        const ScheduleWriter& writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_
