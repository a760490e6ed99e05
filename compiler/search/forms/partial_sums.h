// Splits a thread's sum into several partial sums. The rounding error of a single sum grows with
// its length, and each addition would wait for the previous one.
#ifndef KILN_COMPILER_SEARCH_FORMS_PARTIAL_SUMS_H_
#define KILN_COMPILER_SEARCH_FORMS_PARTIAL_SUMS_H_

#include <cstdint>
#include <vector>

#include "compiler/search/knobs/knob.h"
#include "compiler/search/stage/schedule_writer.h"

namespace kiln::search {

// Returns the number of sums that the heuristic splits a loop into; 1: it is too short.
int64_t StartPartialSums(int64_t extent);

// Legal numbers for a loop of this length.
KnobValues PartialSumsKnob(int64_t extent);

// Cuts the innermost loop of a reduction into this many sums. Returns the order of its loops.
std::vector<int> CutSums(std::vector<int> reduce, int64_t sums, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_PARTIAL_SUMS_H_
