#include "server/sessions/image.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/buffers/pool.h"

namespace kiln::sessions {
namespace {

// Values are read from their device in pieces of this.
constexpr int64_t kPiece = 1 << 20;

}  // namespace

int64_t SessionImage::data_bytes() const {
  int64_t bytes = 0;
  for (const Value& value : values)
    if (value.kind == Value::Kind::kBytes) bytes += value.type.bytes();
  for (const Blob& blob : blobs) bytes += blob.size;
  return bytes;
}

absl::Status WriteBytes(const SessionImage& image, absl::Duration patience, ByteSink& sink) {
  // Shared with the copy's end, which may come after this has given up.
  struct Piece {
    std::string bytes;
    absl::Status status;
    absl::Notification done;
    runtime::ValuePointer value;
  };
  for (const SessionImage::Value& kept : image.values) {
    if (kept.kind != SessionImage::Value::Kind::kBytes) continue;
    const int64_t size = kept.type.bytes();
    for (int64_t offset = 0; offset < size; offset += kPiece) {
      auto piece = std::make_shared<Piece>();
      piece->value = kept.value;
      piece->bytes.resize(static_cast<size_t>(std::min(kPiece, size - offset)));
      kept.value->pool()->Read(*kept.value, offset, absl::MakeSpan(piece->bytes),
                               [piece](const absl::Status& status) {
                                 piece->status = status;
                                 piece->done.Notify();
                               });
      if (!piece->done.WaitForNotificationWithTimeout(patience))
        return absl::DeadlineExceededError("the device does not hand out a tensor's bytes");
      if (!piece->status.ok()) return piece->status;
      if (absl::Status status = sink.Write(piece->bytes); !status.ok()) return status;
    }
  }
  for (const SessionImage::Blob& blob : image.blobs) {
    for (const std::string& piece : blob.data->pieces())
      if (absl::Status status = sink.Write(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::sessions
