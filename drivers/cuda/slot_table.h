// A list's slot table on the device (drivers/interface/kernel_image.h). A run with other buffers
// rewrites the table, so that the commands stay unchanged.
#ifndef KILN_DRIVERS_CUDA_SLOT_TABLE_H_
#define KILN_DRIVERS_CUDA_SLOT_TABLE_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/cuda/context.h"

namespace kiln::drivers::cuda {

// Not thread-safe.
class SlotTable {
 public:
  // RESOURCE_EXHAUSTED: the device is out of memory.
  static absl::StatusOr<std::unique_ptr<SlotTable>> Make(std::shared_ptr<Context> context,
                                                         size_t slots);
  ~SlotTable();

  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory_); }

  // If the addresses changed, enqueues an update of the table: after the lists that read the old
  // content, before the work that is enqueued next. *from then holds the addresses and must live
  // until they were copied. Requires: one address for each slot; the calling thread has a current
  // context.
  absl::Status Write(absl::Span<char* const> addresses, PinnedBlock* from);

 private:
  SlotTable(std::shared_ptr<Context> context, size_t slots)
      : context_(std::move(context)), slots_(slots) {}

  const std::shared_ptr<Context> context_;
  const size_t slots_;
  void* memory_ = nullptr;
  std::vector<char*> written_;  // the table's content; empty: unknown
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_SLOT_TABLE_H_
