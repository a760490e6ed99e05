#include "drivers/opencl/slot_table.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers::opencl {
namespace {

// The most buffers named to kernels for each slot. Beyond that, only the current ones are named.
constexpr size_t kNamedPerSlotMax = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<SlotTable>> SlotTable::Make(std::shared_ptr<Context> context,
                                                           size_t slots) {
  std::unique_ptr<SlotTable> table(new SlotTable(std::move(context), slots));
  const size_t bytes = std::max<size_t>(slots, 1) * sizeof(cl_ulong);
  table->memory_ = table->context_->AllocateMemory(static_cast<int64_t>(bytes));
  if (table->memory_ != nullptr) return table;
  return table->context_->NoMemoryFor(static_cast<int64_t>(bytes),
                                      absl::StrCat("for a table of ", slots, " slots"));
}

SlotTable::~SlotTable() {
  if (memory_ != nullptr) context_->ReleaseMemory(memory_);
}

void SlotTable::Validate() const {
  KILN_CHECK(memory_ != nullptr);
  KILN_CHECK(written_.empty() || written_.size() == slots_) << written_.size() << " of " << slots_;
  KILN_CHECK(!named_.contains(nullptr));
  KILN_CHECK_LE(named_.size(), kNamedPerSlotMax * slots_);
  for (cl_kernel user : users_) KILN_CHECK(user != nullptr);
}

absl::Status SlotTable::Write(cl_command_queue queue, absl::Span<char* const> addresses) {
  KILN_CHECK_EQ(addresses.size(), slots_);
  if (absl::Status status = NameMemory(addresses); !status.ok()) return status;
  if (std::equal(addresses.begin(), addresses.end(), written_.begin(), written_.end()))
    return absl::OkStatus();
  written_.clear();
  const cl_int code =
      context_->cl().EnqueueSVMMemcpy(queue, CL_FALSE, memory_, addresses.data(),
                                      addresses.size() * sizeof(cl_ulong), 0, nullptr, nullptr);
  if (code != CL_SUCCESS) return context_->Failure("cannot write a slot table", code);
  written_.assign(addresses.begin(), addresses.end());
  KILN_VALIDATE(*this, users_.size());
  return absl::OkStatus();
}

absl::Status SlotTable::NameMemory(absl::Span<char* const> addresses) {
  if (!context_->wants_memory_named()) return absl::OkStatus();
  // Named memory may have been released, and its address reused.
  if (const int64_t releases = context_->releases(); releases != releases_) {
    named_.clear();
    releases_ = releases;
  }
  const size_t before = named_.size();
  named_.insert(addresses.begin(), addresses.end());
  named_.erase(nullptr);
  if (named_.size() == before) return absl::OkStatus();
  if (named_.size() > kNamedPerSlotMax * addresses.size()) {
    named_.clear();
    named_.insert(addresses.begin(), addresses.end());
    named_.erase(nullptr);
  }
  const std::vector<void*> pointers(named_.begin(), named_.end());
  ++namings_;
  for (cl_kernel kernel : users_) {
    const cl_int code = context_->cl().SetKernelExecInfo(
        kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, pointers.size() * sizeof(void*), pointers.data());
    if (code == CL_SUCCESS) continue;
    named_.clear();
    return context_->Failure("cannot pass memory to a kernel", code);
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers::opencl
