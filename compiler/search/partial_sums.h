// Splits a thread's sum into several partial sums.
#ifndef KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_
#define KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_

#include <vector>

#include "compiler/search/schedule_writer.h"

namespace kiln::search {

// Returns the order of a reduction whose innermost loop, if it is long enough, is cut into partial
// sums. The rounding error of a single sum grows with its length, and each addition would wait for
// the previous one.
std::vector<int> CutSums(std::vector<int> reduce, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_
