// The loops of a scatter. Tasks divide the parallel points, and each one visits all positions. So
// an element gets its values in one order, for any number of threads. Lanes run along memory if the
// elements of one position do.
#ifndef KILN_COMPILER_SEARCH_FORMS_SCATTER_H_
#define KILN_COMPILER_SEARCH_FORMS_SCATTER_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

std::optional<Values> StartScatter(const StageView& view, const int64_t* leading);
std::vector<KnobValues> ScatterKnobs(const StageView& view, const Values& start);
absl::Status CheckScatter(const StageView& view, const Values& values);
void WriteScatter(const StageView& view, const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_SCATTER_H_
