#include "compiler/search/stage/prefetch_chooser.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/kernel/index_sum.h"
#include "compiler/search/stage/cost.h"

namespace kiln::search {
namespace {

// Shorter rows are loaded with their neighbours' lines.
constexpr int64_t kRowBytesMin = 256;

// Returns the distance between the buffer's rows for adjacent points of the grid's innermost range,
// in elements; 0 if this stage does not read the buffer by rows.
int64_t RowStep(const kernel::Stage& stage, int buffer, const ir::Node* row) {
  int64_t step = 0;
  for (const StageWork::Access& access : WorkOf(stage).accesses) {
    if (access.store || access.buffer != buffer) continue;
    step = std::max(step, std::abs(kernel::SumOf(access.index).Coefficient(row)));
  }
  return step;
}

}  // namespace

std::vector<PrefetchedBuffer> PrefetchedBuffers(const kernel::Kernel& kernel,
                                                const drivers::Target& target) {
  std::vector<PrefetchedBuffer> prefetched;
  if (kernel.grid.empty()) return prefetched;
  const ir::Node* row = kernel.grid.back();
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const kernel::Buffer& buffer = kernel.buffers[i];
    const int bytes = ir::SizeOf(buffer.dtype);
    if (buffer.memory != kernel::Memory::kGlobal || buffer.access != kernel::Access::kRead ||
        buffer.elements * bytes <= target.limits.private_cache_bytes) {
      continue;
    }
    int readers = 0;
    int last = -1;
    for (size_t stage = 0; stage < kernel.stages.size(); ++stage) {
      const int64_t step = RowStep(kernel.stages[stage], static_cast<int>(i), row) * bytes;
      if (step < kRowBytesMin || step > target.limits.private_cache_bytes / 4) continue;
      ++readers;
      last = static_cast<int>(stage);
    }
    if (readers > 1) prefetched.push_back({last, static_cast<int>(i)});
  }
  return prefetched;
}

void WritePrefetches(const kernel::Kernel& kernel, const drivers::Target& target, int64_t rows,
                     ScheduleWriter* writer) {
  if (rows == 0) return;
  for (const auto& [stage, buffer] : PrefetchedBuffers(kernel, target)) {
    writer->Prefetch({stage, buffer, writer->grid().back(), rows});
  }
}

}  // namespace kiln::search
