// A list's slot table in shared virtual memory (drivers/interface/kernel_image.h): what a run with
// other buffers writes anew, so that its kernels' arguments stay as they are.
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
  // RESOURCE_EXHAUSTED: the device has no memory left for it.
  static absl::StatusOr<std::unique_ptr<SlotTable>> Make(std::shared_ptr<Context> context,
                                                         size_t slots);
  ~SlotTable();

  void* address() const { return memory_; }
  // A kernel that takes the table, for as long as this lives.
  void AddUser(cl_kernel kernel) { users_.push_back(kernel); }

  // Enqueues that the table gets these addresses, if it has others, behind the lists that read what
  // it had; they must live until they were copied, and are null where kernels use nothing. Kernels
  // are told of memory that they have not
  // met yet, as OpenCL wants it: buffers are kept and come again, so that is soon all of it.
  absl::Status Write(cl_command_queue queue, absl::Span<char* const> addresses);
  // How often they were.
  int64_t namings() const { return namings_; }

 private:
  explicit SlotTable(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  absl::Status NameMemory(absl::Span<char* const> addresses);

  const std::shared_ptr<Context> context_;
  void* memory_ = nullptr;
  std::vector<char*> written_;  // empty: nobody knows what
  std::vector<cl_kernel> users_;
  absl::flat_hash_set<char*> named_;
  int64_t releases_ = 0;  // of memory, when `named_` was begun
  int64_t namings_ = 0;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_SLOT_TABLE_H_
