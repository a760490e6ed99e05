// Sums that a thread keeps side by side.
#ifndef KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_
#define KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_

#include <vector>

#include "compiler/search/schedule_writer.h"

namespace kiln::search {

// The order of a reduction whose innermost loop is cut into partial sums, if it is long enough. One
// sum alone would be as wrong as it is long, and each addition would wait for the one before.
std::vector<int> CutSums(std::vector<int> reduce, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_PARTIAL_SUMS_H_
