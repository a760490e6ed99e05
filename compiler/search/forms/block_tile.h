// Contractions in tiles: a block of threads computes a tile of the result, each thread a few rows
// and columns of it. The factors are in shared memory, for some steps of the sum at a time.
#ifndef KILN_COMPILER_SEARCH_FORMS_BLOCK_TILE_H_
#define KILN_COMPILER_SEARCH_FORMS_BLOCK_TILE_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

// Factor 0 has the rows, factor 1 the columns. `leading`: the loop of rows.
std::optional<Values> StartBlockTile(const StageView& view, const int64_t* leading);
std::vector<KnobValues> BlockTileKnobs(const StageView& view, const Values& start);
absl::Status CheckBlockTile(const StageView& view, const Values& values);
void WriteBlockTile(const StageView& view, const Values& values, ScheduleWriter* writer);

// Returns whether the heuristic prefers tiles to sums that threads share: the contraction is large
// enough in both directions, and its tiles keep enough units busy.
bool PrefersBlockTile(const StageView& view);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_BLOCK_TILE_H_
