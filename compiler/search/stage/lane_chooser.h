// The axes of a stage along which vector lanes may run, and the cheapest of them.
#ifndef KILN_COMPILER_SEARCH_STAGE_LANE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_STAGE_LANE_CHOOSER_H_

#include <vector>

#include "compiler/search/stage/cost.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

// Returns how many of the elements along the axis fill a vector; 1: there are no vectors.
int LanesFor(const StageView& view, const StageWork& work, int axis);

// Returns the axes of the sum, or else the others, that lanes may run along.
std::vector<int> LaneAxes(const StageView& view, const StageWork& work, bool of_sum);

// Returns the cost of the whole stage with lanes along the axis; -1: without lanes.
double CostAlong(const StageView& view, const StageWork& work, int axis, int lanes);

struct LaneChoice {
  int axis = -1;  // -1: lanes may run along none
  double cost = 0;
};
// Returns the cheapest of LaneAxes. If `leading` is not null, only the axis of that range counts.
LaneChoice BestLanes(const StageView& view, const StageWork& work, bool of_sum,
                     const int64_t* leading);

// Returns the axis of `others` along which an access that is scattered along the lanes is
// contiguous, or -1.
int ContiguousElsewhere(const StageWork& work, int lane_axis, const std::vector<int>& others,
                        const ScheduleWriter& writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_LANE_CHOOSER_H_
