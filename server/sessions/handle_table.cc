#include "server/sessions/handle_table.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::sessions {

absl::Status HandleTable::CheckNew(absl::Span<const uint64_t> handles) const {
  absl::flat_hash_set<uint64_t> seen;
  for (const uint64_t handle : handles) {
    const bool twice = !seen.insert(handle).second;
    if (handle != 0 && !twice && !used_.Contains(handle)) continue;
    const std::string problem =
        handle == 0 ? "handle 0 is not allowed; count from 1"
        : twice     ? absl::StrCat("handle ", handle, " is given twice")
                    : absl::StrCat("handle ", handle,
                                   " has been used before in this session; handles are never reused");
    return errors::WithReason(absl::InvalidArgumentError(problem), "HANDLE_REUSED",
                              {{"handle", absl::StrCat(handle)}});
  }
  return absl::OkStatus();
}

absl::Status HandleTable::Reserve(absl::Span<const uint64_t> handles) {
  if (absl::Status status = CheckNew(handles); !status.ok()) return status;
  return charge_.Resize(BytesWith(handles.size()));
}

void HandleTable::Bind(absl::Span<const uint64_t> handles,
                       absl::Span<const runtime::ValuePointer> values) {
  KILN_CHECK_EQ(handles.size(), values.size());
  KILN_CHECK_GE(charge_.bytes(), BytesWith(handles.size())) << "not reserved";
  for (size_t i = 0; i < handles.size(); ++i) {
    KILN_CHECK(values[i] != nullptr) << "handle " << handles[i];
    const bool is_new = used_.Insert(handles[i]);
    runtime::ValuePointer& value = values_[handles[i]];
    // A client may name a handle twice; both fail with one error.
    KILN_CHECK(is_new || value == values[i]) << "handle " << handles[i] << " is bound twice";
    value = values[i];
  }
  Settle();
  KILN_VALIDATE(*this, values_.size());
}

runtime::ValuePointer HandleTable::Rebind(uint64_t handle, runtime::ValuePointer value) {
  KILN_CHECK(value != nullptr) << "handle " << handle;
  const auto found = values_.find(handle);
  KILN_CHECK(found != values_.end()) << "handle " << handle << " is unknown";
  runtime::ValuePointer before = std::exchange(found->second, std::move(value));
  KILN_VALIDATE(*this, values_.size());
  return before;
}

void HandleTable::RestoreValue(uint64_t handle, runtime::ValuePointer value) {
  const bool is_new = values_.emplace(handle, std::move(value)).second;
  KILN_CHECK(is_new) << "handle " << handle << " is restored twice";
  KILN_VALIDATE(*this, values_.size());
}

void HandleTable::BindFailed(absl::Span<const uint64_t> handles, const absl::Status& error) {
  // Some may not be new: a handle that is refused for that reason keeps its value.
  std::vector<uint64_t> fresh;
  for (const uint64_t handle : handles) {
    if (handle != 0 && !used_.Contains(handle)) fresh.push_back(handle);
  }
  if (fresh.empty() || !charge_.Resize(BytesWith(fresh.size())).ok()) return;
  memory::Charge charge = host_->Open(memory::Use::kHandles);
  charge.ForceResize(errors::BytesOf(error));
  const auto failed = buffers::Value::Failed(error, std::move(charge));
  Bind(fresh, std::vector<runtime::ValuePointer>(fresh.size(), failed));
}

void HandleTable::RebindIf(uint64_t handle, const buffers::Value* current,
                           const runtime::ValuePointer& value) {
  KILN_CHECK(value != nullptr) << "handle " << handle;
  const auto found = values_.find(handle);
  if (found != values_.end() && found->second.get() == current) found->second = value;
  KILN_VALIDATE(*this, values_.size());
}

int64_t HandleTable::BytesWith(size_t more) const {
  constexpr size_t kPerHandle = 512;   // its entry, and a value with its type and buffer
  constexpr size_t kPerInterval = 64;  // of used_
  return static_cast<int64_t>(kPerHandle * (values_.size() + more) +
                              kPerInterval * (used_.intervals() + more));
}

absl::StatusOr<runtime::ValuePointer> HandleTable::Find(uint64_t handle) const {
  const auto found = values_.find(handle);
  if (found == values_.end()) return Unknown(handle);
  return found->second;
}

absl::Status HandleTable::Release(absl::Span<const uint64_t> handles,
                                  std::vector<runtime::ValuePointer>* released) {
  absl::Status status;
  for (const uint64_t handle : handles) {
    auto value = values_.extract(handle);
    if (value.empty()) {
      status.Update(Unknown(handle));
    } else {
      released->push_back(std::move(value.mapped()));
    }
  }
  Settle();
  KILN_VALIDATE(*this, values_.size());
  return status;
}

std::vector<runtime::ValuePointer> HandleTable::ReleaseAllBut(
    const absl::flat_hash_set<uint64_t>& handles) {
  std::vector<runtime::ValuePointer> released;
  absl::erase_if(values_, [&](auto& entry) {
    if (handles.contains(entry.first)) return false;
    released.push_back(std::move(entry.second));
    return true;
  });
  Settle();
  KILN_CHECK_LE(values_.size(), handles.size());
  KILN_VALIDATE(*this, values_.size());
  return released;
}

std::vector<runtime::ValuePointer> HandleTable::FailLost(const absl::Status& error) {
  std::vector<runtime::ValuePointer> lost;
  runtime::ValuePointer failed;
  for (auto& [handle, value] : values_) {
    if (!value->lost()) continue;
    if (failed == nullptr) {
      memory::Charge charge = host_->Open(memory::Use::kHandles);
      charge.ForceResize(errors::BytesOf(error));
      failed = buffers::Value::Failed(error, std::move(charge));
    }
    lost.push_back(std::exchange(value, failed));
  }
  KILN_VALIDATE(*this, values_.size());
  return lost;
}

absl::Status HandleTable::Restore(IdSet used, size_t values) {
  KILN_CHECK(values_.empty() && used_.intervals() == 0);
  used_ = std::move(used);
  return charge_.Resize(BytesWith(values));
}

absl::flat_hash_map<uint64_t, runtime::ValuePointer> HandleTable::TakeAll() {
  charge_ = memory::Charge();  // an empty charge ignores later resizes
  auto all = std::exchange(values_, {});
  KILN_VALIDATE(*this, values_.size());
  return all;
}

void HandleTable::Validate() const {
  for (const auto& [handle, value] : values_) {
    KILN_CHECK(value != nullptr) << "handle " << handle;
    KILN_CHECK(used_.Contains(handle)) << "handle " << handle << " was never used";
  }
  // An emptied table has no charge; its account is given back.
  if (!values_.empty()) KILN_CHECK_GE(charge_.bytes(), BytesWith(0));
}

absl::Status HandleTable::Unknown(uint64_t handle) const {
  const char* what = used_.Contains(handle) ? " has been released" : " is unknown in this session";
  return errors::WithReason(absl::NotFoundError(absl::StrCat("handle ", handle, what)),
                            "UNKNOWN_HANDLE", {{"handle", absl::StrCat(handle)}});
}

}  // namespace kiln::sessions
