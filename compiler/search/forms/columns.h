// Loops in which each lane sums a column: several rows at once, whose sums are in registers, while
// the columns' sums are in the first-level cache.
#ifndef KILN_COMPILER_SEARCH_FORMS_COLUMNS_H_
#define KILN_COMPILER_SEARCH_FORMS_COLUMNS_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

std::optional<Values> StartColumnLanes(const StageView& view, const int64_t* leading);
std::vector<KnobValues> ColumnLanesKnobs(const StageView& view, const Values& start);
absl::Status CheckColumnLanes(const StageView& view, const Values& values);
void WriteColumnLanes(const StageView& view, const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_COLUMNS_H_
