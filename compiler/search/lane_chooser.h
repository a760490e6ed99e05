// Chooses the axis of a stage along which the vector lanes run.
#ifndef KILN_COMPILER_SEARCH_LANE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_LANE_CHOOSER_H_

#include <vector>

#include "compiler/search/schedule_writer.h"
#include "compiler/search/stage_cost.h"

namespace kiln::search {

struct LaneChoice {
  int axis = -1;    // -1: no lanes
  double cost = 0;  // of the whole stage, as in CostOf
};
// `parallel`, `reduce`: the stage's axes; `costs`: the target's.
LaneChoice ChooseLanes(const StageWork& work, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, int lanes,
                       const drivers::InstructionCosts& costs, const ScheduleWriter& writer);

// Returns the axis of `others` along which an access that is scattered along the lanes is
// contiguous, or -1.
int ContiguousElsewhere(const StageWork& work, int lane_axis, const std::vector<int>& others,
                        const ScheduleWriter& writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_LANE_CHOOSER_H_
