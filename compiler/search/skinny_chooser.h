// Schedules for contractions with few rows, such as a vector times a matrix. Their time is bound by
// reading the large factor once, so it is never packed.
#ifndef KILN_COMPILER_SEARCH_SKINNY_CHOOSER_H_
#define KILN_COMPILER_SEARCH_SKINNY_CHOOSER_H_

#include "compiler/search/contraction.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Like ChooseContraction, but only for a large factor that exceeds the caches and few rows of the
// other one.
bool ChooseSkinny(int stage, const Contraction& contraction, const drivers::Target& target,
                  ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_SKINNY_CHOOSER_H_
