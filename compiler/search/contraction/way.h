// The ways to map a contraction to lanes and rows, their cost, and the choice of the cheapest.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_WAY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/register_tile.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

struct ContractionWay {
  int packed = 0;  // the factor that is packed; the other one is broadcast
  int lanes = 1;   // of a vector
  int lane_axis = -1;
  // Loops that lanes run along as if they were one: the lane axis, and those before it among the
  // packed factor's.
  int lane_loops = 1;
  // The packed factor's other loops that are inside those of rows: their panels are packed
  // together, so that windows that overlap are packed once. The rest are tasks. The innermost.
  int panel_loops = 0;
  int row_axis = -1;
  int more_row_axis = -1;
  // Terms that are padding for a whole tile are left out.
  bool skips_padding = false;
  bool stage_rows = false;  // the rows are not plain loads, so they are computed into scratch
  RegisterTile tile;
  int64_t row_chunks = 1;  // tasks that the rows are divided into
  double cycles = 0;       // until the last thread has finished

  // Returns the tile's rows along one of the row axes.
  int64_t TileOf(int axis) const {
    return axis == row_axis ? tile.rows : axis == more_row_axis ? tile.more_rows : 1;
  }
};

// Returns the axes that lanes run along, outermost first.
std::vector<int> LaneLoops(const Contraction& contraction, const ContractionWay& way);
// Returns the packed factor's axes that lanes do not run along, outermost first.
std::vector<int> OtherLoops(const Contraction& contraction, const ContractionWay& way);
// Returns the last of OtherLoops, whose panels are packed together.
std::vector<int> PanelLoops(const Contraction& contraction, const ContractionWay& way);
// Returns the ranges of the loops within a register tile.
std::vector<const ir::Node*> TileRanges(const Contraction& contraction, const ContractionWay& way,
                                        const ScheduleWriter& axes);
// Returns the layout of the packed factor, without its lanes.
std::vector<schedule::StageOperand::Dimension> PanelLayout(const Contraction& contraction,
                                                           const ContractionWay& way,
                                                           const ScheduleWriter& axes);
// Returns the number of positions of a dimension.
int64_t SizeOf(const schedule::StageOperand::Dimension& dimension, const ScheduleWriter& axes);

// Returns how many loops there are that may be lane loops: all until the lane axis.
int LaneLoopsMax(const Contraction& contraction, int lane_axis);

// Returns the number of multiplications.
int64_t WorkIn(const Contraction& contraction, const ScheduleWriter& axes);

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
