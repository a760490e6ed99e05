// Loops without lanes, and with lanes along a sum; and what all forms of loops have in common.
#ifndef KILN_COMPILER_SEARCH_FORMS_LANES_H_
#define KILN_COMPILER_SEARCH_FORMS_LANES_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"
#include "compiler/search/stage/cost.h"

namespace kiln::search {

// Writes all points in order, each with its whole sum.
std::optional<Values> StartScalar(const StageView& view, const int64_t* leading);
std::vector<KnobValues> ScalarKnobs(const StageView& view, const Values& start);
void WriteScalar(const StageView& view, const Values& values, ScheduleWriter* writer);

// Several vectors of partial sums, which are added up at the end.
std::optional<Values> StartSumLanes(const StageView& view, const int64_t* leading);
std::vector<KnobValues> SumLanesKnobs(const StageView& view, const Values& start);
void WriteSumLanes(const StageView& view, const Values& values, ScheduleWriter* writer);

// The cost of vector instructions (stage/cost.h).
double EstimateLanes(const StageView& view, const Values& values);

// For forms with lanes along one loop of a stage.

// Returns whether the heuristic unrolls the whole sum.
bool UnrollsSum(const StageView& view, const StageWork& work);
// Returns the tasks that the heuristic divides work of this cost into.
int64_t StartTasks(const StageView& view, double cost);
KnobValues TasksKnob(const StageView& view, const Values& start);
// Returns the power of two of vectors of sums that the heuristic adds up at once.
int64_t StartVectors(const StageView& view, const StageWork& work, int lane_axis, int lanes);
KnobValues LanesKnob(const StageView& view, const StageWork& work, int lane_axis);
// Returns whether the heuristic stores past the caches, and whether it could.
bool StartNonTemporal(const StageView& view);
bool MayBeNonTemporal(const StageView& view);
// Returns whether some axis has steps that read the same element.
bool HasSharedSteps(const StageView& view, const StageWork& work, const std::vector<int>& axes);

std::vector<int> AxesWithout(const std::vector<int>& axes, int axis);
// Splits axes of which several steps read the same element, if the knob says so; the steps go to
// `inner`. Returns the other loops.
std::vector<int> ShareSteps(const StageView& view, const Values& values,
                            const std::vector<int>& axes, ScheduleWriter* writer,
                            std::vector<int>* inner);
void AppendAxes(const std::vector<int>& axes, std::vector<int>* order);
// Writes the order of the loops and the kind of stores.
void FinishLanes(const StageView& view, const Values& values, const std::vector<int>& order,
                 ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_LANES_H_
