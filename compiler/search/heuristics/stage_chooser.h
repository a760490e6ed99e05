// The heuristic for one stage on a core with vector registers: which form its loops get.
#ifndef KILN_COMPILER_SEARCH_HEURISTICS_STAGE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_HEURISTICS_STAGE_CHOOSER_H_

#include "compiler/search/forms/forms.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

// `grid_lanes`: a loop of the grid already has lanes.
Form ChooseStageForm(const StageView& view, bool grid_lanes);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_HEURISTICS_STAGE_CHOOSER_H_
