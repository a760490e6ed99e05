// A list's slot table in shared virtual memory (drivers/interface/kernel_image.h). A run with other
// buffers rewrites the table, so that its kernels' arguments stay unchanged.
#ifndef KILN_DRIVERS_OPENCL_SLOT_TABLE_H_
#define KILN_DRIVERS_OPENCL_SLOT_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/opencl/context.h"

namespace kiln::drivers::opencl {

// Not thread-safe.
class SlotTable {
 public:
  // RESOURCE_EXHAUSTED: the device is out of memory.
  static absl::StatusOr<std::unique_ptr<SlotTable>> Make(std::shared_ptr<Context> context,
                                                         size_t slots);
  ~SlotTable();

  void* address() const { return memory_; }
  // Adds a kernel that takes the table. It must outlive this object.
  void AddUser(cl_kernel kernel) { users_.push_back(kernel); }

  // If the addresses changed, enqueues an update of the table, after the lists that read the old
  // content. `addresses` must live until they were copied; null for slots that kernels do not use.
  // New memory is named to the kernels, as OpenCL requires; buffers are reused, so after a few runs
  // all of it is known.
  // Requires: one address for each slot.
  absl::Status Write(cl_command_queue queue, absl::Span<char* const> addresses);
  // How often memory was named to kernels.
  int64_t namings() const { return namings_; }

 private:
  SlotTable(std::shared_ptr<Context> context, size_t slots)
      : context_(std::move(context)), slots_(slots) {}
  // Checks that the content is that of all slots or unknown, and what is named to kernels.
  void Validate() const;
  absl::Status NameMemory(absl::Span<char* const> addresses);

  const std::shared_ptr<Context> context_;
  const size_t slots_;
  void* memory_ = nullptr;
  std::vector<char*> written_;  // the table's content; empty: unknown
  std::vector<cl_kernel> users_;
  absl::flat_hash_set<char*> named_;
  int64_t releases_ = 0;  // memory releases when `named_` was started
  int64_t namings_ = 0;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_SLOT_TABLE_H_
