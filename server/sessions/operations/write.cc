#include "server/sessions/operations/write.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// The pieces of a Write. With pieces of 4 MiB, as clients make them, this is 256 GiB.
constexpr size_t kPiecesMax = 1 << 16;
// The maximal size of a piece of a value on several devices, so that other copies can run in
// between.
constexpr size_t kPlacedPieceBytesMax = 4 << 20;

// The data of a Write until its bytes are on the device.
struct Filling {
  runtime::ValuePointer value;
  std::string data;
  std::vector<buffers::BlobStore::Blob> blobs;
  std::vector<absl::string_view> pieces;  // of `data` or `blobs`
  memory::Charge charge;                  // for staging memory
};

std::vector<absl::string_view> Cut(const std::vector<absl::string_view>& pieces) {
  std::vector<absl::string_view> cut;
  for (absl::string_view piece : pieces) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kPlacedPieceBytesMax)))
      cut.push_back(piece.substr(0, kPlacedPieceBytesMax));
  }
  return cut;
}

absl::Status CheckForm(const Write& write) {
  if (absl::Status status = buffers::CheckTensorType(write.type); !status.ok())
    return errors::WithReason(status, "BAD_TENSOR_TYPE", {{"handle", absl::StrCat(write.handle)}});
  if (write.blobs.size() <= kPiecesMax) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("handle ", write.handle, ": ", write.blobs.size(),
                                              " pieces are more than the limit of ", kPiecesMax,
                                              "; send fewer and larger pieces")),
      "TOO_MANY_PIECES", {{"handle", absl::StrCat(write.handle)}});
}

absl::Status CheckSize(const Write& write, int64_t size) {
  const int64_t wanted = write.type.bytes();
  if (size == wanted) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("handle ", write.handle, ": ", write.type.ToString(),
                                              " takes ", wanted, " bytes, but ", size,
                                              size > wanted ? " or more" : "", " were sent")),
      "SIZE_MISMATCH", {{"handle", absl::StrCat(write.handle)}});
}

// Finds the blobs of a Write, and adds their sizes to `size` until it is more than the value's.
absl::Status FindBlobs(SessionState& session, uint64_t sequence, const Write& write, bool again,
                       Filling* filling, int64_t* size) {
  // Each name is looked up once, because the store may forget a blob after it was found.
  absl::flat_hash_map<std::string, buffers::BlobStore::Blob> found;
  for (const std::string& name : write.blobs) {
    buffers::BlobStore::Blob& blob = found[name];
    if (!blob) {
      auto stored =
          session.services.blobs->Find(session.identity.number, session.user->name, name, sequence);
      // The log has the bytes; the lookup is needed to mark the blob as used.
      if (again) continue;
      if (!stored.ok()) return stored.status();
      blob = *std::move(stored);
    }
    *size += blob->size();
    if (*size > write.type.bytes()) break;  // a name may be repeated
    filling->blobs.push_back(blob);
  }
  return absl::OkStatus();
}

// Users are about to use the devices, so the daemon must not search for itself.
void CountAsWork(const SessionState& session) {
  if (session.services.host_work != nullptr) session.services.host_work->Touch();
}

// Charges the staging memory of a value on several devices.
absl::Status ChargeStaging(SessionState& session, Filling* filling) {
  size_t largest = 0;
  for (const absl::string_view piece : filling->pieces) largest = std::max(largest, piece.size());
  auto charge = session.host->Reserve(
      memory::Use::kTransfers, static_cast<int64_t>(largest * filling->value->parts().size()));
  if (!charge.ok()) return charge.status();
  filling->charge = *std::move(charge);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Filling>> MakeFilling(SessionState& session, uint64_t sequence,
                                                           Write& write) {
  if (absl::Status status = CheckForm(write); !status.ok()) return status;
  CountAsWork(session);
  auto filling = std::make_shared<Filling>();
  int64_t size = static_cast<int64_t>(write.data.size());
  const bool again = session.IsReplaying();
  if (write.blobs.empty() || again) {
    filling->data = std::move(write.data);
    filling->pieces = {filling->data};
  }
  absl::Status status = FindBlobs(session, sequence, write, again, filling.get(), &size);
  if (status.ok()) status = CheckSize(write, size);
  if (!status.ok()) return status;
  auto value =
      Allocate(session, std::make_shared<const buffers::TensorType>(write.type), write.placement);
  if (!value.ok()) return value.status();
  filling->value = *std::move(value);
  // Only now that memory for all bytes is allocated, since a name may be repeated.
  for (const buffers::BlobStore::Blob& blob : filling->blobs)
    filling->pieces.insert(filling->pieces.end(), blob->pieces().begin(), blob->pieces().end());
  if (!filling->value->parts().empty()) {
    filling->pieces = Cut(filling->pieces);
    status = ChargeStaging(session, filling.get());
    if (!status.ok()) return status;
  }
  return filling;
}

void FinishWrite(SessionState& session, uint64_t sequence, const Filling& filling,
                 const absl::Status& filled) {
  absl::Status status = filled;
  if (!filled.ok()) {
    status = errors::WithBoundedMessage(session.devices.AfterFailure(*filling.value, filled));
  } else {
    session.services.metrics->Received(static_cast<int64_t>(filling.data.size()));
  }
  CountAsWork(session);
  filling.value->Resolve(status);
  {
    absl::MutexLock lock(&session.mutex);
    session.being_copied.erase(filling.value);
    if (!status.ok()) session.FailedLate(status);
    KILN_VALIDATE(session, session.entries());
  }
  session.Finish({.sequence = sequence, .error = status});
}

// Fills a value in parts, one piece after another.
void FillPieces(SessionState& session, uint64_t sequence, std::shared_ptr<const Filling> filling,
                size_t next, int64_t offset) {
  KILN_CHECK_LE(next, filling->pieces.size());
  if (next == filling->pieces.size()) {
    KILN_CHECK_EQ(offset, filling->value->bytes()) << "operation " << sequence;
    return FinishWrite(session, sequence, *filling, absl::OkStatus());
  }
  const absl::string_view piece = filling->pieces[next];
  buffers::FillWhole(
      *filling->value, offset, piece,
      [self = session.shared_from_this(), sequence, filling, next,
       end = offset + static_cast<int64_t>(piece.size())](const absl::Status& filled) {
        // On a thread that may block, not on a device's thread.
        self->services.copies->Schedule([self, sequence, filling, next, end, filled] {
          if (!filled.ok()) return FinishWrite(*self, sequence, *filling, filled);
          FillPieces(*self, sequence, filling, next + 1, end);
        });
      });
}

}  // namespace

void Write::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[placement.is_home() ? 0 : 1]);
  if (!placement.is_home()) Encode(out, placement);
  out.Number(handle);
  out.Type(type);
  out.Texts(blobs);
}

Write Write::DecodeFromLog(uint64_t kind, Decoder& in) {
  Write write;
  if (kind == kLogKinds[1]) write.placement = DecodePlacement(in);
  write.handle = in.Number();
  write.type = in.Type();
  write.blobs = in.Texts();
  return write;
}

void Write::Execute(SessionState& session, uint64_t sequence) {
  absl::Status reserved;
  {
    absl::MutexLock lock(&session.mutex);
    reserved = session.handles.Reserve({handle});
  }
  if (!reserved.ok()) return session.Refuse(sequence, {}, reserved);
  const std::string encoded = session.Encoded(*this);
  const auto filling = MakeFilling(session, sequence, *this);
  if (!filling.ok()) return session.Refuse(sequence, {handle}, filling.status());
  const runtime::ValuePointer& value = (*filling)->value;
  if (session.recorder) session.recorder->Wrote(sequence, encoded, blobs, (*filling)->pieces);
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.closed) session.handles.Bind({handle}, {value});
    if (!buffers::Pool::IsHostMemory(*value)) session.being_copied.insert(value);
    KILN_VALIDATE(session, session.entries());
  }
  if (value->placement()) return FillPieces(session, sequence, *filling, 0, 0);
  // Later operations, except runs that use the value, do not wait for this.
  value->pool()->Fill(
      *value, (*filling)->pieces,
      [self = session.shared_from_this(), sequence, filling = *filling](
          const absl::Status& filled) { FinishWrite(*self, sequence, *filling, filled); });
}

}  // namespace kiln::sessions
