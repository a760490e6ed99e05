// The schedule of a scatter.
#ifndef KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_
#define KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Tasks share the points of `parallel`, each goes over all positions: so an element gets its values
// in one order, whatever the number of threads. Lanes stand along memory, if the elements of one
// position do.
void ChooseScatter(const kernel::Kernel& kernel, int number, const std::vector<int>& parallel,
                   const drivers::Target& target, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_
