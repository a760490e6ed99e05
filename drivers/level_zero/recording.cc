#include "drivers/level_zero/recording.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::drivers::level_zero {
namespace {

bool AreSame(absl::Span<char* const> a, absl::Span<char* const> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recording>> Recording::Make(std::shared_ptr<Context> context,
                                                           const Recorded& recorded, Order order) {
  std::unique_ptr<Recording> recording(new Recording(std::move(context), recorded, order));
  for (List& list : recording->lists_) {
    auto made = recording->context_->MakeList();
    if (!made.ok()) return made.status();
    list.handle = *made;
  }
  if (recorded.wants_table)
    if (absl::Status status = recording->MakeTable(); !status.ok()) return status;
  if (order == Order::kTimed && !recorded.calls.empty())
    if (absl::Status status = recording->MakeEvents(); !status.ok()) return status;
  return recording;
}

Recording::~Recording() {
  const Library& ze = context_->ze();
  for (const List& list : lists_) {
    if (list.handle != nullptr) ze.CommandListDestroy(list.handle);
  }
  if (write_table_ != nullptr) ze.CommandListDestroy(write_table_);
  for (ze_event_handle_t event : events_) ze.EventDestroy(event);
  if (pool_ != nullptr) ze.EventPoolDestroy(pool_);
  if (table_ != nullptr) context_->ReleaseMemory(table_);
  if (table_source_ != nullptr) context_->ReleaseMemory(table_source_);
}

void Recording::Validate() const {
  KILN_CHECK_EQ(lists_.size(), recorded_.sections.size());
  KILN_CHECK_EQ(table_ != nullptr, recorded_.wants_table);
  KILN_CHECK(written_.empty() || written_.size() == recorded_.num_slots) << written_.size();
  KILN_CHECK(events_.empty() || events_.size() == recorded_.calls.size()) << events_.size();
  for (const List& list : lists_) {
    KILN_CHECK(list.handle != nullptr);
    KILN_CHECK(!list.is_closed || list.addresses.size() == recorded_.num_slots);
  }
}

absl::Status Recording::MakeTable() {
  const Library& ze = context_->ze();
  const size_t bytes = std::max<size_t>(recorded_.num_slots, 1) * sizeof(uint64_t);
  table_ = context_->AllocateMemory(static_cast<int64_t>(bytes));
  if (table_ == nullptr) {
    return context_->NoMemoryFor(static_cast<int64_t>(bytes),
                                 absl::StrCat("for a table of ", recorded_.num_slots, " slots"));
  }
  auto source = context_->AllocateHostMemory(bytes);
  if (!source.ok()) return source.status();
  table_source_ = reinterpret_cast<char**>(*source);
  auto list = context_->MakeList();
  if (!list.ok()) return list.status();
  write_table_ = *list;
  // No barrier before it: while the table is written, nothing on the device reads it, and the next
  // reader begins with a barrier.
  ze_result_t code = ze.CommandListAppendMemoryCopy(write_table_, table_, table_source_, bytes,
                                                    nullptr, 0, nullptr);
  if (code == ZE_RESULT_SUCCESS) code = ze.CommandListClose(write_table_);
  return code == ZE_RESULT_SUCCESS ? absl::OkStatus() : Fail("cannot record a slot table", code);
}

absl::Status Recording::MakeEvents() {
  const Library& ze = context_->ze();
  ze_event_pool_desc_t pool = {};
  pool.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
  pool.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
  pool.count = static_cast<uint32_t>(recorded_.calls.size());
  ze_device_handle_t device = context_->device();
  ze_result_t code = ze.EventPoolCreate(context_->get(), &pool, 1, &device, &pool_);
  if (code != ZE_RESULT_SUCCESS) pool_ = nullptr;
  for (uint32_t i = 0; i < pool.count && code == ZE_RESULT_SUCCESS; ++i) {
    ze_event_desc_t desc = {};
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
    desc.index = i;
    desc.signal = ZE_EVENT_SCOPE_FLAG_HOST;
    ze_event_handle_t event = nullptr;
    code = ze.EventCreate(pool_, &desc, &event);
    if (code == ZE_RESULT_SUCCESS) events_.push_back(event);
  }
  return code == ZE_RESULT_SUCCESS ? absl::OkStatus() : Fail("cannot make events", code);
}

bool Recording::Has(absl::Span<char* const> addresses) const {
  if (recorded_.wants_table && !AreSame(written_, addresses)) return false;
  for (size_t i = 0; i < lists_.size(); ++i) {
    if (!lists_[i].is_closed) return false;
    if (recorded_.sections[i].has_addresses && !AreSame(lists_[i].addresses, addresses))
      return false;
  }
  return true;
}

absl::Status Recording::Prepare(size_t begin, size_t end, absl::Span<char* const> addresses,
                                std::vector<ze_command_list_handle_t>* lists) {
  KILN_CHECK(in_use);
  KILN_CHECK(begin <= end && end <= lists_.size()) << begin << " to " << end;
  KILN_CHECK_EQ(addresses.size(), recorded_.num_slots);
  if (recorded_.wants_table && !AreSame(written_, addresses)) {
    std::copy(addresses.begin(), addresses.end(), table_source_);
    written_.assign(addresses.begin(), addresses.end());
    lists->push_back(write_table_);
  }
  for (size_t i = begin; i < end; ++i) {
    List& list = lists_[i];
    const Section& section = recorded_.sections[i];
    const bool stands =
        list.is_closed && (!section.has_addresses || AreSame(list.addresses, addresses));
    if (!stands)
      if (absl::Status status = Record(section, addresses, &list); !status.ok()) return status;
    lists->push_back(list.handle);
  }
  KILN_VALIDATE(*this, lists_.size());
  return absl::OkStatus();
}

absl::Status Recording::Record(const Section& section, absl::Span<char* const> addresses,
                               List* list) {
  const Library& ze = context_->ze();
  list->addresses.assign(addresses.begin(), addresses.end());
  // Also needed after a recording that failed halfway.
  ze_result_t code = ze.CommandListReset(list->handle);
  list->is_closed = false;
  if (code != ZE_RESULT_SUCCESS) return Fail("cannot reset a command list", code);
  for (size_t i = section.begin; i < section.end; ++i) {
    const Call& call = recorded_.calls[i];
    // The barrier of the first call waits for the lists executed before.
    if (i == section.begin || order_ != Order::kBySlots || call.needs_barrier)
      code = ze.CommandListAppendBarrier(list->handle, nullptr, 0, nullptr);
    if (code == ZE_RESULT_SUCCESS) {
      code = Append(*context_, call, {addresses, table_}, list->handle,
                    events_.empty() ? nullptr : events_[i]);
    }
    if (code != ZE_RESULT_SUCCESS) return context_->Failure(call.WhatFailed(), code);
  }
  code = ze.CommandListClose(list->handle);
  if (code != ZE_RESULT_SUCCESS) return Fail("cannot close a command list", code);
  list->is_closed = true;
  return absl::OkStatus();
}

std::vector<double> Recording::CallSeconds() const {
  const DeviceFacts& facts = context_->facts();
  std::vector<double> seconds;
  for (ze_event_handle_t event : events_) {
    ze_kernel_timestamp_result_t times = {};
    const bool known = context_->ze().EventQueryKernelTimestamp(event, &times) == ZE_RESULT_SUCCESS;
    // A timestamp with fewer valid bits may have wrapped between the two.
    const uint64_t cycles = (times.global.kernelEnd - times.global.kernelStart) & facts.cycle_mask;
    seconds.push_back(known ? static_cast<double>(cycles) * facts.cycle_seconds : 0);
  }
  return seconds;
}

}  // namespace kiln::drivers::level_zero
