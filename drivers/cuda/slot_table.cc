#include "drivers/cuda/slot_table.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers::cuda {

absl::StatusOr<std::unique_ptr<SlotTable>> SlotTable::Make(std::shared_ptr<Context> context,
                                                           size_t slots) {
  std::unique_ptr<SlotTable> table(new SlotTable(std::move(context), slots));
  const size_t bytes = std::max<size_t>(slots, 1) * sizeof(CUdeviceptr);
  table->memory_ = table->context_->AllocateMemory(static_cast<int64_t>(bytes));
  if (table->memory_ != nullptr) return table;
  return table->context_->NoMemoryFor(static_cast<int64_t>(bytes),
                                      absl::StrCat("for a table of ", slots, " slots"));
}

SlotTable::~SlotTable() {
  if (memory_ != nullptr) context_->ReleaseMemory(memory_);
}

absl::Status SlotTable::Write(absl::Span<char* const> addresses, PinnedBlock* from) {
  KILN_CHECK_EQ(addresses.size(), slots_);
  if (std::equal(addresses.begin(), addresses.end(), written_.begin(), written_.end()))
    return absl::OkStatus();
  const size_t bytes = addresses.size() * sizeof(CUdeviceptr);
  auto block = context_->TakePinned(bytes);
  if (!block.ok()) return block.status();
  *from = *std::move(block);
  KILN_CHECK(from->memory() != nullptr) << bytes << " bytes";
  std::memcpy(from->memory(), addresses.data(), bytes);
  written_.clear();
  const CUresult code = context_->cuda().MemcpyHtoDAsync_v2(address(), from->memory(), bytes,
                                                            context_->list_stream());
  if (code != CUDA_SUCCESS) return context_->Failure("cannot write a slot table", code);
  written_.assign(addresses.begin(), addresses.end());
  return absl::OkStatus();
}

}  // namespace kiln::drivers::cuda
