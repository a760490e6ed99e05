#include "server/sessions/checkpoint/checkpoint.h"

#include "proto/check/check.h"
#include "server/buffers/whole.h"

namespace kiln::sessions {

namespace {

using Kind = Checkpoint::Value::Kind;

}  // namespace

int64_t Checkpoint::data_bytes() const {
  int64_t bytes = 0;
  for (const Value& value : values)
    if (value.kind == Kind::kBytes) bytes += value.type.bytes();
  for (const Blob& blob : blobs) bytes += blob.size;
  return bytes;
}

std::vector<std::string> Checkpoint::DeviceNames() const {
  std::vector<std::string> names = {device};
  absl::flat_hash_set<std::string> seen = {device};
  const auto add = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const Value& value : values)
    if (value.kind == Kind::kBytes) value.placement.ForEachDevice(device, add);
  for (const auto& origin : origins)
    for (const std::string& name : origin->devices) add(name);
  for (const SavedPending& each : pending)
    if (const RequestedPlacement* placement = PlacedAt(each.operation))
      placement->ForEachDevice(device, add);
  return names;
}

int64_t Checkpoint::bytes_on(const std::string& name) const {
  int64_t bytes = 0;
  for (const Value& value : values) {
    if (value.kind != Kind::kBytes) continue;
    int64_t part = value.type.bytes();
    if (const auto& sharding = value.placement.sharding) {
      part = buffers::TensorType{value.type.dtype,
                                 buffers::PartOf(*sharding, value.type.shape, 0).memory}
                 .bytes();
    }
    value.placement.ForEachDevice(device, [&](const std::string& on) {
      if (on == name) bytes += part;
    });
  }
  return bytes;
}

void CancelPending(const absl::flat_hash_set<uint64_t>& runs, Checkpoint* checkpoint) {
  const absl::Status error = runtime::CancelledRun();
  auto& pending = checkpoint->pending;
  // From the last one backwards, as PendingTable::CancelRuns does.
  for (auto each = pending.rbegin(); each != pending.rend(); ++each) {
    const auto* run = std::get_if<SavedRun>(&each->operation);
    if (run == nullptr || !runs.contains(each->sequence)) continue;
    KILN_CHECK_GE(run->results.size(), run->updates.size()) << "run " << each->sequence;
    size_t after = run->results.size() - run->updates.size();
    for (const SavedRun::Update& update : run->updates) {
      for (auto& [handle, value] : checkpoint->handles)
        if (handle == update.handle && value == run->results[after]) value = update.before;
      ++after;
    }
    for (const size_t result : run->results)
      checkpoint->values[result] = {.kind = Kind::kFailed, .error = error};
    checkpoint->answers.push_back({.sequence = each->sequence, .error = error});
  }
  std::erase_if(pending, [&](const SavedPending& each) {
    return std::holds_alternative<SavedRun>(each.operation) && runs.contains(each.sequence);
  });
}

absl::Status WriteBytes(const Checkpoint& checkpoint, CopyDeadline& deadline, ByteSink& sink) {
  for (const Checkpoint::Value& saved : checkpoint.values) {
    if (saved.kind != Kind::kBytes) continue;
    KILN_CHECK(saved.value != nullptr);
    const int64_t size = saved.type.bytes();
    KILN_CHECK_EQ(size, saved.value->bytes());
    for (int64_t offset = 0; offset < size; offset += kValuePieceBytes) {
      const auto piece = std::make_shared<std::string>();
      piece->resize(static_cast<size_t>(std::min(kValuePieceBytes, size - offset)));
      absl::Status status = deadline.Await([&](CopyDeadline::Done done) {
        buffers::ReadWhole(*saved.value, offset, absl::MakeSpan(*piece),
                           [piece, value = saved.value,
                            done = std::move(done)](const absl::Status& read) { done(read); });
      });
      if (status.ok()) status = sink.Write(*piece);
      if (!status.ok()) return status;
    }
  }
  for (const Checkpoint::Blob& blob : checkpoint.blobs) {
    KILN_CHECK(blob.data != nullptr) << blob.name;
    KILN_CHECK_EQ(blob.data->size(), blob.size) << blob.name;
    for (const absl::string_view piece : blob.data->pieces())
      if (absl::Status status = sink.Write(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::sessions
