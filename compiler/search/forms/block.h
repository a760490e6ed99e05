// A block of threads for each task: threads compute points of their own, or share each sum. A
// thread takes several neighbours at a time if they are adjacent in memory, so that it reads and
// writes 16 bytes at once.
#ifndef KILN_COMPILER_SEARCH_FORMS_BLOCK_H_
#define KILN_COMPILER_SEARCH_FORMS_BLOCK_H_

#include <optional>
#include <vector>

#include "compiler/search/forms/forms.h"

namespace kiln::search {

// The heuristic gives no block fewer threads, and no thread of a stage less work to share.
inline constexpr int64_t kBlockThreadsMin = 32;

// Adjacent threads have adjacent points, or adjacent groups of them.
std::optional<Values> StartBlockPoints(const StageView& view, const int64_t* leading);
std::vector<KnobValues> BlockPointsKnobs(const StageView& view, const Values& start);
absl::Status CheckBlockPoints(const StageView& view, const Values& values);
void WriteBlockPoints(const StageView& view, const Values& values, ScheduleWriter* writer);

// Adjacent threads have adjacent terms, or adjacent groups of them.
std::optional<Values> StartBlockSum(const StageView& view, const int64_t* leading);
std::vector<KnobValues> BlockSumKnobs(const StageView& view, const Values& start);
absl::Status CheckBlockSum(const StageView& view, const Values& values);
void WriteBlockSum(const StageView& view, const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_BLOCK_H_
