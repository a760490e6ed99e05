// The ways to map a contraction to lanes and rows, their cost, and the choice of the cheapest.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_

#include <cstdint>
#include <optional>

#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/register_tile.h"
#include "compiler/search/stage/view.h"

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

// Returns whether the contraction has enough work, and enough rows, to gain from panels.
bool PanelPays(const Contraction& contraction, int packed, const ScheduleWriter& axes);

// Returns the cheapest way; of those for which PanelPays, if there are any. If `leading` is not
// null, the lanes are along that range. Returns nullopt if there are no lanes or no rows.
std::optional<ContractionWay> ChooseWay(const StageView& view, const Contraction& contraction,
                                        const int64_t* leading);

// Returns the estimate of `cycles` for any way.
double WayCycles(const StageView& view, const Contraction& contraction, const ContractionWay& way);

// Returns the most lanes that a vector of the factors has.
int ContractionLanes(const StageView& view, const Contraction& contraction);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_
