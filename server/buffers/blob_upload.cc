#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
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
      data_(std::make_shared<Chunks>(store.recycler_, std::move(charge))) {}

int64_t BlobStore::Upload::Overhead(int64_t announced) {
  constexpr int64_t kMostSpare = 1 << 20;
  return kEntry + std::min(announced, kMostSpare);
}

BlobStore::Upload::~Upload() {
  if (!finished_) store_.Unreserve(reserved_);
}

absl::Status BlobStore::Upload::Append(std::string& data) {
  if (data.size() > static_cast<size_t>(size_ - data_->size())) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but more came")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  const auto bytes = static_cast<int64_t>(data.size());
  // Without the store's lock: what does not fit has Reclaim called, which takes it.
  absl::Status status = data_->GrowCharge(data_->size() + bytes + Overhead(size_));
  if (status.ok()) status = store_.Reserve(name_, bytes, is_exempt_);
  if (!status.ok()) return status;
  reserved_ += bytes;
  data_->Append(data);
  return absl::OkStatus();
}

absl::Status BlobStore::Upload::Finish() {
  if (data_->size() != size_) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("blob ", Quoted(name_), " was announced with ",
                                                size_, " bytes, but ", data_->size(), " came")),
        "BLOB_SIZE", {{"blob", name_}});
  }
  // What was reserved for the bytes belongs to the stored entry from here on.
  finished_ = true;
  data_->ShrinkCharge(size_ + kEntry);
  store_.Store({user_, name_, session_}, std::move(data_));
  return absl::OkStatus();
}

}  // namespace kiln::buffers
