#include "server/sessions/image.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "server/buffers/whole.h"

namespace kiln::sessions {

int64_t SessionImage::data_bytes() const {
  int64_t bytes = 0;
  for (const Value& value : values)
    if (value.kind == Value::Kind::kBytes) bytes += value.type.bytes();
  for (const Blob& blob : blobs) bytes += blob.size;
  return bytes;
}

namespace {

// Calls `add` with each device of the place, once for each part there.
void ForEachDevice(const Place& place, const std::string& home,
                   const std::function<void(const std::string&)>& add) {
  if (!place.placement) return add(place.device.empty() ? home : place.device);
  for (const std::string& device : place.placement->devices) add(device);
}

}  // namespace

std::vector<std::string> SessionImage::DeviceNames() const {
  std::vector<std::string> names = {device};
  absl::flat_hash_set<std::string> seen = {device};
  const auto add = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const Value& value : values)
    if (value.kind == Value::Kind::kBytes) ForEachDevice(value.place, device, add);
  for (const auto& origin : origins)
    for (const std::string& name : origin->devices) add(name);
  for (const Pending& each : pending)
    if (const auto* move = std::get_if<Move>(&each.operation))
      ForEachDevice(move->place, device, add);
  return names;
}

int64_t SessionImage::bytes_on(const std::string& name) const {
  int64_t bytes = 0;
  for (const Value& value : values) {
    if (value.kind != Value::Kind::kBytes) continue;
    int64_t part = value.type.bytes();
    if (value.place.placement) {
      part =
          buffers::TensorType{value.type.dtype,
                              buffers::PartOf(*value.place.placement, value.type.shape, 0).memory}
              .bytes();
    }
    ForEachDevice(value.place, device, [&](const std::string& on) {
      if (on == name) bytes += part;
    });
  }
  return bytes;
}

void CancelPending(const absl::flat_hash_set<uint64_t>& runs, SessionImage* image) {
  using Pending = SessionImage::Pending;
  const absl::Status error = runtime::CancelledRun();
  // From the last one backwards, as UnfinishedRuns::Cancel does.
  for (auto pending = image->pending.rbegin(); pending != image->pending.rend(); ++pending) {
    const auto* run = std::get_if<KeptRun>(&pending->operation);
    if (run == nullptr || !runs.contains(pending->sequence)) continue;
    size_t after = run->results.size() - run->updates.size();
    for (const KeptRun::Update& update : run->updates) {
      for (auto& [handle, place] : image->handles)
        if (handle == update.handle && place == run->results[after]) place = update.before;
      ++after;
    }
    for (const size_t result : run->results)
      image->values[result] = {.kind = SessionImage::Value::Kind::kFailed, .error = error};
    image->answers.push_back({.sequence = pending->sequence, .error = error});
  }
  std::erase_if(image->pending, [&](const Pending& pending) {
    return std::holds_alternative<KeptRun>(pending.operation) && runs.contains(pending.sequence);
  });
}

absl::Status WriteBytes(const SessionImage& image, Patience& patience, ByteSink& sink) {
  for (const SessionImage::Value& kept : image.values) {
    if (kept.kind != SessionImage::Value::Kind::kBytes) continue;
    const int64_t size = kept.type.bytes();
    for (int64_t offset = 0; offset < size; offset += kValuePieceBytes) {
      const auto piece = std::make_shared<std::string>();
      piece->resize(static_cast<size_t>(std::min(kValuePieceBytes, size - offset)));
      absl::Status status = patience.Await([&](Patience::Done done) {
        buffers::ReadWhole(*kept.value, offset, absl::MakeSpan(*piece),
                           [piece, value = kept.value,
                            done = std::move(done)](const absl::Status& read) { done(read); });
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
