// Which axis of a stage the lanes of vectors stand along.
#ifndef KILN_COMPILER_SEARCH_LANE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_LANE_CHOOSER_H_

#include <vector>

#include "compiler/search/schedule_writer.h"
#include "compiler/search/stage_cost.h"

namespace kiln::search {

struct LaneChoice {
  int axis = -1;    // -1: no lanes
  double cost = 0;  // of the whole stage, as CostOf has it
};
// `parallel`, `reduce`: the stage's axes; `costs`: the target's.
LaneChoice ChooseLanes(const StageWork& work, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, int lanes,
                       const drivers::InstructionCosts& costs, const ScheduleWriter& writer);

// The axis of `others` along which an access is contiguous that is scattered along the lanes; -1:
// none.
int ContiguousElsewhere(const StageWork& work, int lane_axis, const std::vector<int>& others,
                        const ScheduleWriter& writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_LANE_CHOOSER_H_
