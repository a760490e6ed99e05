#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/buffers/blob_store.h"
#include "server/errors/errors.h"

namespace kiln::buffers {

BlobStore::Upload::Upload(BlobStore& store, SessionNumber session, std::string user,
                          std::string name, int64_t size, bool is_exempt, memory::Charge charge)
    : store_(store),
      session_(session),
      user_(std::move(user)),
      name_(std::move(name)),
      size_(size),
      is_exempt_(is_exempt),
      data_(std::make_shared<Chunks>(store.recycler_, size, std::move(charge))) {}

BlobStore::Upload::~Upload() {
  if (!finished_) store_.Unreserve(come_);
}

absl::Status BlobStore::Upload::Append(absl::Span<const absl::string_view> data) {
  int64_t bytes = 0;
  for (const absl::string_view piece : data) bytes += static_cast<int64_t>(piece.size());
  if (bytes == 0) return absl::OkStatus();
  if (bytes > size_ - come_) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but more were sent")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  KILN_CHECK(!finished_) << name_;
  // Without the store's lock: growing the charge may call Reclaim, which takes it.
  absl::Status status = data_->GrowCharge(data_->MemoryWith(bytes) + kEntry);
  if (status.ok()) status = store_.Reserve(name_, bytes, is_exempt_);
  if (!status.ok()) return errors::WithReason(status, errors::Reason(status), {{"blob", name_}});
  come_ += bytes;
  for (const absl::string_view piece : data) data_->Append(piece);
  KILN_CHECK_EQ(data_->size(), come_) << name_;
  return absl::OkStatus();
}

absl::Status BlobStore::Upload::Finish() {
  if (!is_complete()) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but ", come_, " were sent")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  KILN_CHECK(!finished_) << name_;
  KILN_CHECK_EQ(data_->size(), size_) << name_;
  // The reserved bytes now belong to the stored entry.
  finished_ = true;
  store_.Store({user_, name_, session_}, std::move(data_));
  return absl::OkStatus();
}

}  // namespace kiln::buffers
