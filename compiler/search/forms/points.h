// Loops in which each lane has its own point, with few terms of a sum or none.
#ifndef KILN_COMPILER_SEARCH_FORMS_POINTS_H_
#define KILN_COMPILER_SEARCH_FORMS_POINTS_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"
#include "compiler/search/stage/cost.h"

namespace kiln::search {

std::optional<Values> StartPointLanes(const StageView& view, const int64_t* leading);
std::vector<KnobValues> PointLanesKnobs(const StageView& view, const Values& start);
void WritePointLanes(const StageView& view, const Values& values, ScheduleWriter* writer);

// Squares of lanes by lanes are transposed in registers: the code is repeated for each row.
std::optional<Values> StartSquares(const StageView& view, const int64_t* leading);
std::vector<KnobValues> SquaresKnobs(const StageView& view, const Values& start);
absl::Status CheckSquares(const StageView& view, const Values& values);
void WriteSquares(const StageView& view, const Values& values, ScheduleWriter* writer);

// Returns whether the heuristic prefers squares, if lanes run along this axis.
bool PrefersSquares(const StageView& view, const StageWork& work, int lane_axis);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_POINTS_H_
