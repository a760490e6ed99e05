// Prefetches of the rows of a kernel of several stages.
#ifndef KILN_COMPILER_SEARCH_STAGE_PREFETCH_CHOOSER_H_
#define KILN_COMPILER_SEARCH_STAGE_PREFETCH_CHOOSER_H_

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/stage/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// A buffer that several stages read by rows, and the last of them.
struct PrefetchedBuffer {
  int stage = 0;
  int buffer = 0;
};
// For a kernel whose stages share a grid and read the same rows (softmax, layer norm). Without
// prefetches only the first stage would wait for memory, and nothing else would happen meanwhile.
std::vector<PrefetchedBuffer> PrefetchedBuffers(const kernel::Kernel& kernel,
                                                const drivers::Target& target);

// The last stage that reads a row fetches the one that is `rows` further; 0: none does.
void WritePrefetches(const kernel::Kernel& kernel, const drivers::Target& target, int64_t rows,
                     ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_PREFETCH_CHOOSER_H_
