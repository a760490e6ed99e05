// Chooses the rows that a kernel of several stages prefetches while it computes others.
#ifndef KILN_COMPILER_SEARCH_PREFETCH_CHOOSER_H_
#define KILN_COMPILER_SEARCH_PREFETCH_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// For a kernel whose stages share a grid and read the same rows (softmax, layer norm). Without
// prefetches only the first stage would wait for memory, and nothing else would happen meanwhile.
// So the last stage that reads a row fetches the next one.
void ChoosePrefetches(const kernel::Kernel& kernel, const drivers::Target& target,
                      ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_PREFETCH_CHOOSER_H_
