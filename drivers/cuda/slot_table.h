// A list's slot table on the device (drivers/interface/kernel_image.h): what a run with other
// buffers writes anew, so that its commands stay as they are.
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
  // RESOURCE_EXHAUSTED: the device has no memory left for it.
  static absl::StatusOr<std::unique_ptr<SlotTable>> Make(std::shared_ptr<Context> context,
                                                         size_t slots);
  ~SlotTable();

  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory_); }

  // Enqueues that the table gets these addresses, if it has others: behind the lists that read what
  // it had, in front of what is enqueued next. *from then keeps them and must live until they were
  // copied. The calling thread has a current context.
  absl::Status Write(absl::Span<const CUdeviceptr> addresses, PinnedBlock* from);

 private:
  explicit SlotTable(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  const std::shared_ptr<Context> context_;
  void* memory_ = nullptr;
  std::vector<CUdeviceptr> written_;  // empty: nobody knows what
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_SLOT_TABLE_H_
