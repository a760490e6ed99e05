// Contractions with few rows, such as a vector times a matrix. Their time is bound by reading the
// large factor once, so it is never packed.
#ifndef KILN_COMPILER_SEARCH_FORMS_SKINNY_H_
#define KILN_COMPILER_SEARCH_FORMS_SKINNY_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

// Lanes along the results: a few rows of the large factor at a time are added to all results of the
// task.
std::optional<Values> StartRowByRow(const StageView& view, const int64_t* leading);
std::vector<KnobValues> RowByRowKnobs(const StageView& view, const Values& start);
absl::Status CheckRowByRow(const StageView& view, const Values& values);
void WriteRowByRow(const StageView& view, const Values& values, ScheduleWriter* writer);

// Lanes along the sum: each result is a dot product of contiguous memory.
std::optional<Values> StartDotProducts(const StageView& view, const int64_t* leading);
std::vector<KnobValues> DotProductsKnobs(const StageView& view, const Values& start);
absl::Status CheckDotProducts(const StageView& view, const Values& values);
void WriteDotProducts(const StageView& view, const Values& values, ScheduleWriter* writer);

// Returns the form that the heuristic prefers to panels, or nullopt: only for a large factor that
// exceeds the caches and few rows of the other one.
std::optional<Form> PreferSkinny(const StageView& view);

// One of these forms for factors that fit the caches, with the cycles until the last thread has
// finished, comparable with EstimatePanel.
struct SkinnyCost {
  Form form = Form::kRowByRow;
  double cycles = 0;
};
// Returns the cheapest, or nullopt if the stage can have none of these forms.
std::optional<SkinnyCost> CheapestSkinny(const StageView& view);
double EstimateRowByRow(const StageView& view, const Values& values);
double EstimateDotProducts(const StageView& view, const Values& values);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_SKINNY_H_
