#include "server/sessions/image.h"

#include <algorithm>
#include <memory>
#include <utility>

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

absl::Status WriteBytes(const SessionImage& image, Patience& patience, ByteSink& sink) {
  for (const SessionImage::Value& kept : image.values) {
    if (kept.kind != SessionImage::Value::Kind::kBytes) continue;
    const int64_t size = kept.type.bytes();
    for (int64_t offset = 0; offset < size; offset += kPiece) {
      const auto piece = std::make_shared<std::string>();
      piece->resize(static_cast<size_t>(std::min(kPiece, size - offset)));
      absl::Status status = patience.Await([&](Patience::Done done) {
        kept.value->pool()->Read(*kept.value, offset, absl::MakeSpan(*piece),
                                 [piece, value = kept.value, done = std::move(done)](
                                     const absl::Status& read) { done(read); });
      });
      if (status.ok()) status = sink.Write(*piece);
      if (!status.ok()) return status;
    }
  }
  for (const SessionImage::Blob& blob : image.blobs) {
    for (const absl::string_view piece : blob.data->pieces())
      if (absl::Status status = sink.Write(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::sessions
