#include "server/sessions/handle_table.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
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

void HandleTable::Bind(uint64_t handle, runtime::ValuePointer value) {
  used_.Insert(handle);
  values_[handle] = std::move(value);
}

void HandleTable::Poison(absl::Span<const uint64_t> handles, const absl::Status& error,
                         memory::Charge charge) {
  const auto failed = buffers::Value::Failed(error, std::move(charge));
  for (const uint64_t handle : handles) {
    if (handle != 0 && !used_.Contains(handle)) Bind(handle, failed);
  }
}

int64_t HandleTable::BytesWith(size_t more) const {
  constexpr size_t kPerHandle = 512;   // its entry, and a value with its type and buffer
  constexpr size_t kPerInterval = 64;  // of the numbers that have been used
  return static_cast<int64_t>(kPerHandle * (values_.size() + more) +
                              kPerInterval * (used_.intervals() + more));
}

absl::StatusOr<runtime::ValuePointer> HandleTable::Find(uint64_t handle) const {
  const auto found = values_.find(handle);
  if (found == values_.end()) return Unknown(handle);
  return found->second;
}

absl::Status HandleTable::Release(uint64_t handle) {
  return values_.erase(handle) > 0 ? absl::OkStatus() : Unknown(handle);
}

absl::Status HandleTable::Unknown(uint64_t handle) const {
  const char* what = used_.Contains(handle) ? " has been released" : " is unknown in this session";
  return errors::WithReason(absl::NotFoundError(absl::StrCat("handle ", handle, what)),
                            "UNKNOWN_HANDLE", {{"handle", absl::StrCat(handle)}});
}

}  // namespace kiln::sessions
