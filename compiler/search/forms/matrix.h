// Contractions on matrix units: a block of threads computes a tile of the result, and each subgroup
// of 32 threads a part of it, made of the 16 by 8 sums of single instructions
// (schedule/matrix/plan.h). The factors are in shared memory, for some terms of the sum at a time,
// and are copied in vectors of 16 bytes.
#ifndef KILN_COMPILER_SEARCH_FORMS_MATRIX_H_
#define KILN_COMPILER_SEARCH_FORMS_MATRIX_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

// Only if the target has matrix units, and the stage is a contraction of types that they support.
// Sizes that are not multiples of a tile are padded. `leading`: the loop of rows.
std::optional<Values> StartMatrixTile(const StageView& view, const int64_t* leading);
std::vector<KnobValues> MatrixTileKnobs(const StageView& view, const Values& start);
absl::Status CheckMatrixTile(const StageView& view, const Values& values);
void WriteMatrixTile(const StageView& view, const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_MATRIX_H_
