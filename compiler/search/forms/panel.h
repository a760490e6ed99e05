// Contractions in register tiles. Lanes run along one factor, which is packed into panels that fit
// the cache; the rows of the other factor are broadcast.
#ifndef KILN_COMPILER_SEARCH_FORMS_PANEL_H_
#define KILN_COMPILER_SEARCH_FORMS_PANEL_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

std::optional<Values> StartPanel(const StageView& view, const int64_t* leading);
std::vector<KnobValues> PanelKnobs(const StageView& view, const Values& start);
absl::Status CheckPanel(const StageView& view, const Values& values);
void WritePanel(const StageView& view, const Values& values, ScheduleWriter* writer);
double EstimatePanel(const StageView& view, const Values& values);

// Returns whether the heuristic prefers a panel to loops: the stage is a contraction with enough
// work and enough rows.
bool PrefersPanel(const StageView& view);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_PANEL_H_
