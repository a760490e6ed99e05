// Execution of operations on values, and of barriers.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// The pieces of a Write. With pieces of 4 MiB, as clients make them, this is 256 GiB.
constexpr size_t kPiecesMax = 1 << 16;
// The maximal size of a piece of a value on several devices, so that other copies can run in
// between.
constexpr size_t kPlacedPieceBytesMax = 4 << 20;

std::vector<absl::string_view> Cut(const std::vector<absl::string_view>& pieces) {
  std::vector<absl::string_view> cut;
  for (absl::string_view piece : pieces) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kPlacedPieceBytesMax)))
      cut.push_back(piece.substr(0, kPlacedPieceBytesMax));
  }
  return cut;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Session::Upload>> Session::MakeUpload(uint64_t sequence,
                                                                           Write& operation) {
  if (absl::Status status = buffers::CheckTensorType(operation.type); !status.ok()) {
    return errors::WithReason(status, "BAD_TENSOR_TYPE",
                              {{"handle", absl::StrCat(operation.handle)}});
  }
  auto upload = std::make_shared<Upload>();
  const auto type = std::make_shared<const buffers::TensorType>(operation.type);
  if (operation.blobs.size() > kPiecesMax) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "handle ", operation.handle, ": ", operation.blobs.size(),
            " pieces are more than the limit of ", kPiecesMax, "; send fewer and larger pieces")),
        "TOO_MANY_PIECES", {{"handle", absl::StrCat(operation.handle)}});
  }
  int64_t size = static_cast<int64_t>(operation.data.size());
  const bool again = IsReplaying();
  if (operation.blobs.empty() || again) {
    upload->data = std::move(operation.data);
    upload->pieces = {upload->data};
  }
  // Each name is looked up once, because the store may forget a blob after it was found.
  absl::flat_hash_map<std::string, buffers::BlobStore::Blob> found;
  for (const std::string& name : operation.blobs) {
    buffers::BlobStore::Blob& blob = found[name];
    if (!blob) {
      auto stored = services_.blobs->Find(identity_.number, user_->name, name, sequence);
      // The journal has the bytes; the lookup is needed to mark the blob as used.
      if (again) continue;
      if (!stored.ok()) return stored.status();
      blob = *std::move(stored);
    }
    if (!blob) continue;
    size += blob->size();
    if (size > type->bytes()) break;  // a name may be repeated
    upload->blobs.push_back(blob);
  }
  if (size != type->bytes()) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "handle ", operation.handle, ": ", type->ToString(), " takes ", type->bytes(),
            " bytes, but ", size, size > type->bytes() ? " or more" : "", " were sent")),
        "SIZE_MISMATCH", {{"handle", absl::StrCat(operation.handle)}});
  }
  auto value = AllocateAt(type, operation.place);
  if (!value.ok()) return value.status();
  upload->value = *std::move(value);
  // Only now that memory for all bytes is allocated, since a name may be repeated.
  for (const buffers::BlobStore::Blob& blob : upload->blobs)
    upload->pieces.insert(upload->pieces.end(), blob->pieces().begin(), blob->pieces().end());
  if (!upload->value->parts().empty()) {
    upload->pieces = Cut(upload->pieces);
    size_t largest = 0;
    for (const absl::string_view piece : upload->pieces) largest = std::max(largest, piece.size());
    auto charge = host_->Reserve(memory::Use::kTransfers,
                                 static_cast<int64_t>(largest * upload->value->parts().size()));
    if (!charge.ok()) return charge.status();
    upload->charge = *std::move(charge);
  }
  return upload;
}

void Session::Execute(uint64_t sequence, Write& operation) {
  absl::Status reserved;
  {
    absl::MutexLock lock(&mutex_);
    reserved = handles_.Reserve({operation.handle});
  }
  if (!reserved.ok()) return Refuse(sequence, {}, reserved);
  const std::string encoded = wants_protection() ? EncodeOperation(operation) : "";
  auto upload = MakeUpload(sequence, operation);
  if (!upload.ok()) return Refuse(sequence, {operation.handle}, upload.status());
  JournalWrite(sequence, encoded, operation.blobs, (*upload)->pieces);
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) handles_.Bind({operation.handle}, {(*upload)->value});
    if (!buffers::Pool::IsHostMemory(*(*upload)->value)) uploads_.insert((*upload)->value);
  }
  if ((*upload)->value->placement()) return FillPieces(sequence, *upload, 0, 0);
  // Later operations, except runs that use the value, do not wait for this.
  (*upload)->value->pool()->Fill(
      *(*upload)->value, (*upload)->pieces,
      [self = shared_from_this(), sequence, upload = *upload](const absl::Status& filled) {
        self->FinishWrite(sequence, *upload, filled);
      });
}

void Session::FillPieces(uint64_t sequence, std::shared_ptr<const Upload> upload, size_t next,
                         int64_t offset) {
  if (next == upload->pieces.size()) return FinishWrite(sequence, *upload, absl::OkStatus());
  const absl::string_view piece = upload->pieces[next];
  buffers::FillWhole(
      *upload->value, offset, piece,
      [self = shared_from_this(), sequence, upload, next,
       end = offset + static_cast<int64_t>(piece.size())](const absl::Status& filled) {
        // On a thread that may block, not on a device's thread.
        self->services_.copies->Schedule([self, sequence, upload, next, end, filled] {
          if (!filled.ok()) return self->FinishWrite(sequence, *upload, filled);
          self->FillPieces(sequence, upload, next + 1, end);
        });
      });
}

void Session::FinishWrite(uint64_t sequence, const Upload& upload, const absl::Status& filled) {
  absl::Status status = filled;
  if (!filled.ok())
    status = errors::WithBoundedMessage(devices_.AfterFailure(*upload.value, filled));
  if (status.ok()) services_.metrics->Received(static_cast<int64_t>(upload.data.size()));
  upload.value->Resolve(status);
  {
    absl::MutexLock lock(&mutex_);
    uploads_.erase(upload.value);
    if (!status.ok()) FailedLate(status);
  }
  Finish({.sequence = sequence, .error = status});
}

void Session::Execute(uint64_t sequence, Read& operation) {
  absl::StatusOr<runtime::ValuePointer> value;
  {
    absl::MutexLock lock(&mutex_);
    value = handles_.Find(operation.handle);
  }
  if (!value.ok()) return Fail(sequence, {}, value.status());
  if ((*value)->bytes() > services_.limits.read_bytes) {
    return Fail(
        sequence, {},
        errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                               "handle ", operation.handle, " holds ", (*value)->bytes(),
                               " bytes, but Read returns at most ", services_.limits.read_bytes,
                               "; use BlobService.Download")),
                           "TOO_LARGE_FOR_READ", {{"handle", absl::StrCat(operation.handle)}}));
  }
  AwaitRead(sequence, *value);
}

void Session::AwaitRead(uint64_t sequence, const runtime::ValuePointer& value) {
  if (!value->resolved()) {
    absl::MutexLock lock(&mutex_);
    if (!closed_) in_flight_.emplace(sequence, ReadInFlight{value});
  }
  const auto read = [self = shared_from_this(), sequence, value](const absl::Status&) {
    self->FinishRead(sequence, value);
  };
  if (!value->AddWaiter(read)) read(absl::OkStatus());
}

void Session::FinishRead(uint64_t sequence, const runtime::ValuePointer& value) {
  if (!value->status().ok()) return Finish({.sequence = sequence, .error = value->status()});
  Finish({.sequence = sequence, .value = value});
}

void Session::Execute(uint64_t sequence, Release& operation) {
  absl::Status status;
  std::vector<runtime::ValuePointer> released;  // destroyed without the lock: may be slow
  {
    absl::MutexLock lock(&mutex_);
    status = handles_.Release(operation.handles, &released);
  }
  released.clear();
  services_.blobs->Delete(identity_.number, user_->name, operation.blobs);
  Finish({.sequence = sequence, .error = status});
}

void Session::Execute(uint64_t sequence, Refused& operation) {
  Fail(sequence, operation.handles, operation.error);
}

void Session::Execute(uint64_t sequence, UnknownOperation&) {
  Fail(sequence, {},
       errors::WithReason(
           absl::UnimplementedError("the request has no operation that this daemon knows; check "
                                    "that the client is not newer than the daemon"),
           "UNKNOWN_OPERATION"));
}

void Session::Execute(uint64_t sequence, Barrier&) {
  {
    absl::MutexLock lock(&mutex_);
    if (unfinished_.AddBarrier(sequence)) {
      if (!closed_) in_flight_.emplace(sequence, BarrierInFlight());
      return;
    }
  }
  Finish({.sequence = sequence});
}

}  // namespace kiln::sessions
