// The schedule of a scatter.
#ifndef KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_
#define KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Tasks divide the points of `parallel`, and each one visits all positions. So an element gets its
// values in one order, for any number of threads. Lanes run along memory if the elements of one
// position do.
void ChooseScatter(const kernel::Kernel& kernel, int number, const std::vector<int>& parallel,
                   const drivers::Target& target, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_SCATTER_CHOOSER_H_
