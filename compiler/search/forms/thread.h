// A task for each thread: it computes a few neighbouring points, each with its whole sum. A block
// of threads runs adjacent tasks.
#ifndef KILN_COMPILER_SEARCH_FORMS_THREAD_H_
#define KILN_COMPILER_SEARCH_FORMS_THREAD_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

std::optional<Values> StartThread(const StageView& view, const int64_t* leading);
std::vector<KnobValues> ThreadKnobs(const StageView& view, const Values& start);
absl::Status CheckThread(const StageView& view, const Values& values);
// Takes loops that are not fused: the points of a shared grid stay as they are.
void WriteThread(const StageView& view, const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_THREAD_H_
