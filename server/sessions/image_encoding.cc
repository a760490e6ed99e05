// Encodes session images as bytes. Later builds read them: a change of the format needs a new
// version (kImageVersion).
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "server/sessions/encoding.h"
#include "server/sessions/image.h"
#include "server/sessions/place_encoding.h"
#include "server/sessions/session_names.h"

namespace kiln::sessions {
namespace {

using Image = SessionImage;
using Kind = SessionImage::Value::Kind;

void Put(Encoder& out, absl::Duration duration) { out.Signed(absl::ToInt64Nanoseconds(duration)); }
absl::Duration TakeDuration(Decoder& in) { return absl::Nanoseconds(in.Signed()); }

void Put(Encoder& out, const std::vector<size_t>& places) {
  out.Number(places.size());
  for (const size_t place : places) out.Number(place);
}

std::vector<size_t> TakePlaces(Decoder& in, size_t below) {
  std::vector<size_t> places(in.Count());
  for (size_t& place : places) place = in.Below(below);
  return places;
}

void Put(Encoder& out, const IdSet& ids) {
  out.Number(ids.intervals());
  for (const auto& [first, last] : ids.first_to_last()) {
    out.Number(first);
    out.Number(last);
  }
}

IdSet TakeIds(Decoder& in) {
  IdSet ids;
  uint64_t before = 0;
  bool is_first = true;
  for (size_t intervals = in.Count(); intervals > 0; --intervals) {
    const uint64_t first = in.Number();
    const uint64_t last = in.Number();
    if (last < first || (!is_first && first <= before)) in.Fail();
    if (!in.ok()) return {};
    ids.InsertAll(first, last);
    before = last;
    is_first = false;
  }
  return ids;
}

void Put(Encoder& out, const SessionIdentity& identity) {
  out.Signed(identity.number);
  out.Text(identity.id);
  out.Text(identity.name);
  out.Text(identity.client.name);
  out.Text(identity.client.version);
  out.Text(identity.client.description);
  out.Number(identity.client.op_set_version);
  out.Number(identity.client.is_local ? 1 : 0);
  Put(out, identity.lease);
  Put(out, std::min(identity.away_lease, identity.lease));
  out.Number(identity.priority == fairness::Priority::kBatch ? 1 : 0);
  out.Signed(absl::ToUnixNanos(identity.opened));
}

SessionIdentity TakeIdentity(Decoder& in) {
  SessionIdentity identity;
  identity.number = in.Signed();
  identity.id = std::string(in.Text());
  identity.name = std::string(in.Text());
  identity.client.name = std::string(in.Text());
  identity.client.version = std::string(in.Text());
  identity.client.description = std::string(in.Text());
  identity.client.op_set_version = static_cast<uint32_t>(in.Number());
  identity.client.is_local = in.Number() != 0;
  identity.lease = TakeDuration(in);
  identity.away_lease = TakeDuration(in);
  identity.priority =
      in.Number() != 0 ? fairness::Priority::kBatch : fairness::Priority::kInteractive;
  identity.opened = absl::FromUnixNanos(in.Signed());
  if (identity.number <= 0 || identity.id.empty()) in.Fail();
  return identity;
}

void Put(Encoder& out, const Image::Value& value) {
  out.Number(static_cast<uint64_t>(value.kind));
  if (value.kind == Kind::kFailed) out.Status(value.error);
  if (value.kind != Kind::kBytes) return;
  out.Number(static_cast<uint64_t>(value.type.dtype));
  out.Number(value.type.shape.size());
  for (const int64_t size : value.type.shape) out.Signed(size);
}

Image::Value TakeValue(Decoder& in) {
  Image::Value value;
  value.kind = static_cast<Kind>(in.Below(3));
  if (value.kind == Kind::kFailed) {
    value.error = in.Status();
    if (value.error.ok()) in.Fail();
  }
  if (value.kind != Kind::kBytes) return value;
  value.type.dtype = static_cast<ir::DType>(in.Below(ir::kNumDTypes));
  value.type.shape.resize(in.Count());
  for (int64_t& size : value.type.shape) size = in.Signed();
  if (!in.ok() || !buffers::CheckTensorType(value.type).ok()) in.Fail();
  return value;
}

void Put(Encoder& out, const Image::Pending& pending) {
  out.Number(pending.sequence);
  out.Number(pending.operation.index());
  if (const auto* run = std::get_if<Image::Run>(&pending.operation)) {
    out.Number(run->origin);
    out.Number(run->bindings.size());
    for (const auto& [name, number] : run->bindings) {
      out.Text(name);
      out.Signed(number);
    }
    Put(out, run->inputs);
    Put(out, run->results);
    out.Number(run->report_time ? 1 : 0);
  } else if (const auto* definition = std::get_if<Image::Definition>(&pending.operation)) {
    out.Number(definition->origin);
  } else if (const auto* read = std::get_if<Image::Read>(&pending.operation)) {
    out.Number(read->value);
  } else if (const auto* move = std::get_if<Image::Move>(&pending.operation)) {
    out.Number(move->source);
    out.Number(move->target);
    PutPlace(out, move->place);
  }
}

Image::Pending TakePending(Decoder& in, const Image& image) {
  Image::Pending pending;
  pending.sequence = in.Number();
  switch (in.Below(5)) {
    case 0: {
      Image::Run run;
      run.origin = in.Below(image.origins.size());
      for (size_t bindings = in.Count(); bindings > 0; --bindings) {
        std::string name(in.Text());
        run.bindings[std::move(name)] = in.Signed();
      }
      run.inputs = TakePlaces(in, image.values.size());
      run.results = TakePlaces(in, image.values.size());
      run.report_time = in.Number() != 0;
      pending.operation = std::move(run);
      break;
    }
    case 1:
      pending.operation = Image::Definition{in.Below(image.origins.size())};
      break;
    case 2:
      pending.operation = Image::Read{in.Below(image.values.size())};
      break;
    case 3:
      pending.operation = Image::Barrier{};
      break;
    default: {
      Image::Move move;
      move.source = in.Below(image.values.size());
      move.target = in.Below(image.values.size());
      move.place = TakePlace(in);
      pending.operation = std::move(move);
    }
  }
  return pending;
}

void Put(Encoder& out, const Image::KeptAnswer& answer) {
  out.Number(answer.sequence);
  out.Status(answer.error);
  out.Number(answer.value ? *answer.value + 1 : 0);
  out.Text(answer.digest);
  out.Real(answer.device_seconds);
}

Image::KeptAnswer TakeAnswer(Decoder& in, size_t values) {
  Image::KeptAnswer answer;
  answer.sequence = in.Number();
  answer.error = in.Status();
  if (const size_t value = in.Below(values + 1); value > 0) answer.value = value - 1;
  answer.digest = std::string(in.Text());
  answer.device_seconds = in.Real();
  return answer;
}

void Put(Encoder& out, const std::optional<Image::Detached>& detached) {
  out.Number(detached ? 1 : 0);
  if (!detached) return;
  out.Text(detached->name);
  Put(out, detached->keep);
  out.Number(detached->tensors.size());
  for (const NamedHandle& tensor : detached->tensors) {
    out.Text(tensor.name);
    out.Number(tensor.handle);
  }
}

std::optional<Image::Detached> TakeDetached(Decoder& in) {
  if (in.Below(2) == 0) return std::nullopt;
  Image::Detached detached;
  detached.name = std::string(in.Text());
  detached.keep = TakeDuration(in);
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    detached.tensors.push_back({std::move(name), in.Number()});
  }
  if (!CheckName("a session", detached.name).ok() || detached.tensors.size() > kNamedTensorsMax)
    in.Fail();
  return detached;
}

// Version 3 added this to pending runs.
void PutUpdates(Encoder& out, const Image& image) {
  for (const Image::Pending& pending : image.pending) {
    const auto* run = std::get_if<Image::Run>(&pending.operation);
    if (run == nullptr) continue;
    out.Number(run->updates.size());
    for (const KeptRun::Update& update : run->updates) {
      out.Number(update.handle);
      out.Number(update.before);
    }
  }
}

void TakeUpdates(Decoder& in, Image* image) {
  for (Image::Pending& pending : image->pending) {
    auto* run = std::get_if<Image::Run>(&pending.operation);
    if (run == nullptr) continue;
    for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
      const uint64_t handle = in.Number();
      run->updates.push_back({handle, in.Below(image->values.size())});
    }
    if (run->updates.size() > run->results.size()) in.Fail();
  }
}

// Version 4 added this: the devices of values and programs, unless it is the session's device.
void PutPlaces(Encoder& out, const Image& image) {
  for (const Image::Value& value : image.values)
    if (value.kind == Kind::kBytes) PutPlace(out, value.place);
  for (const auto& origin : image.origins) {
    out.Number(origin->devices.size());
    for (const std::string& device : origin->devices) out.Text(device);
  }
}

void TakePlaces(Decoder& in, Image* image) {
  for (Image::Value& value : image->values) {
    if (value.kind != Kind::kBytes) continue;
    value.place = TakePlace(in);
    const buffers::Placement* placement = value.place.placement.get();
    if (placement != nullptr &&
        !graph::CheckSpec(placement->mesh, placement->spec, value.type.shape, "").ok())
      in.Fail();
  }
  for (auto& origin : image->origins) {
    auto placed = std::make_shared<ProgramOrigin>(*origin);
    for (size_t count = in.Count(); count > 0 && in.ok(); --count)
      placed->devices.emplace_back(in.Text());
    if (placed->devices.size() > static_cast<size_t>(graph::kMeshDevicesMax)) in.Fail();
    origin = std::move(placed);
  }
}

// Checks the references between the tables.
bool IsConsistent(const Image& image) {
  // Each pending value is made by one operation, which precedes those that use it.
  absl::flat_hash_set<size_t> made;
  const auto is_there = [&](size_t value) {
    return image.values[value].kind != Kind::kPending || made.contains(value);
  };
  uint64_t before = 0;
  absl::flat_hash_set<uint64_t> pending_sequences;
  for (const Image::Pending& pending : image.pending) {
    if (pending.sequence <= before || pending.sequence > image.executed) return false;
    before = pending.sequence;
    pending_sequences.insert(before);
    if (const auto* run = std::get_if<Image::Run>(&pending.operation)) {
      for (const size_t input : run->inputs)
        if (!is_there(input)) return false;
      for (const KeptRun::Update& update : run->updates)
        if (!is_there(update.before)) return false;
      for (const size_t result : run->results)
        if (image.values[result].kind != Kind::kPending || made.contains(result)) return false;
      made.insert(run->results.begin(), run->results.end());  // equal results are one value
    } else if (const auto* read = std::get_if<Image::Read>(&pending.operation)) {
      if (!is_there(read->value)) return false;
    } else if (const auto* move = std::get_if<Image::Move>(&pending.operation)) {
      if (!is_there(move->source) || image.values[move->target].kind != Kind::kPending ||
          !made.insert(move->target).second)
        return false;
    }
  }
  absl::flat_hash_set<uint64_t> seen;
  for (const auto& [handle, value] : image.handles)
    if (!image.used_handles.Contains(handle) || !seen.insert(handle).second || !is_there(value))
      return false;
  seen.clear();
  for (const Image::Program& program : image.programs)
    if (!image.used_programs.Contains(program.number) || !seen.insert(program.number).second)
      return false;
  before = image.executed;
  for (const Image::Cancelled& cancelled : image.cancelled) {
    if (cancelled.cancel <= before) return false;
    before = cancelled.cancel;
  }
  seen.clear();
  for (const Image::KeptAnswer& answer : image.answers) {
    if (answer.sequence == 0 || answer.sequence > image.executed ||
        pending_sequences.contains(answer.sequence) || !seen.insert(answer.sequence).second)
      return false;
    if (answer.value && image.values[*answer.value].kind != Kind::kBytes) return false;
  }
  return true;
}

// True if the sum of the sizes fits an int64.
bool HasCountableBytes(const Image& image) {
  int64_t bytes = 0;
  for (const Image::Value& value : image.values)
    if (value.kind == Kind::kBytes && __builtin_add_overflow(bytes, value.type.bytes(), &bytes))
      return false;
  for (const Image::Blob& blob : image.blobs)
    if (__builtin_add_overflow(bytes, blob.size, &bytes)) return false;
  return true;
}

}  // namespace

std::string Encode(const SessionImage& image) {
  Encoder out;
  Put(out, image.identity);
  out.Number(image.generation);
  Put(out, image.detached);
  out.Text(image.user);
  out.Text(image.device);
  Put(out, image.remaining);
  out.Number(image.executed);
  out.Signed(image.runs);
  out.Real(image.device_seconds);
  out.Number(image.origins.size());
  for (const auto& origin : image.origins) {
    out.Text(origin->wire);
    out.Text(origin->name);
  }
  out.Number(image.values.size());
  for (const Image::Value& value : image.values) Put(out, value);
  out.Number(image.pending.size());
  for (const Image::Pending& pending : image.pending) Put(out, pending);
  out.Number(image.answers.size());
  for (const Image::KeptAnswer& answer : image.answers) Put(out, answer);
  Put(out, image.used_handles);
  out.Number(image.handles.size());
  for (const auto& [handle, value] : image.handles) {
    out.Number(handle);
    out.Number(value);
  }
  Put(out, image.used_programs);
  out.Number(image.programs.size());
  for (const Image::Program& program : image.programs) {
    out.Number(program.number);
    out.Status(program.error);
    if (program.error.ok()) out.Number(program.origin);
  }
  out.Number(image.blobs.size());
  for (const Image::Blob& blob : image.blobs) {
    out.Text(blob.name);
    out.Signed(blob.size);
  }
  out.Number(image.cancelled.size());
  for (const Image::Cancelled& cancelled : image.cancelled) {
    out.Number(cancelled.first);
    out.Number(cancelled.cancel);
  }
  Put(out, image.identity.snapshot_interval);
  out.Number(image.journal);
  out.Number(image.is_live ? 1 : 0);
  PutUpdates(out, image);
  PutPlaces(out, image);
  return out.Take();
}

absl::StatusOr<SessionImage> Decode(absl::string_view bytes, uint32_t version) {
  Decoder in(bytes);
  Image image;
  image.identity = TakeIdentity(in);
  image.generation = in.Number();
  image.detached = TakeDetached(in);
  image.user = std::string(in.Text());
  image.device = std::string(in.Text());
  image.remaining = TakeDuration(in);
  image.executed = in.Number();
  image.runs = in.Signed();
  image.device_seconds = in.Real();
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    auto origin = std::make_shared<ProgramOrigin>();
    origin->wire = std::string(in.Text());
    origin->name = std::string(in.Text());
    image.origins.push_back(std::move(origin));
  }
  for (size_t count = in.Count(); count > 0 && in.ok(); --count)
    image.values.push_back(TakeValue(in));
  for (size_t count = in.Count(); count > 0 && in.ok(); --count)
    image.pending.push_back(TakePending(in, image));
  for (size_t count = in.Count(); count > 0 && in.ok(); --count)
    image.answers.push_back(TakeAnswer(in, image.values.size()));
  image.used_handles = TakeIds(in);
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    const uint64_t handle = in.Number();
    image.handles.emplace_back(handle, in.Below(image.values.size()));
  }
  image.used_programs = TakeIds(in);
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    Image::Program program;
    program.number = in.Number();
    program.error = in.Status();
    if (program.error.ok()) program.origin = in.Below(image.origins.size());
    image.programs.push_back(std::move(program));
  }
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    Image::Blob blob;
    blob.name = std::string(in.Text());
    blob.size = in.Signed();
    if (blob.size < 0) in.Fail();
    image.blobs.push_back(std::move(blob));
  }
  if (version >= 2) {
    for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
      const uint64_t first = in.Number();
      image.cancelled.push_back({first, in.Number()});
    }
  }
  if (version >= 3) {
    image.identity.snapshot_interval = TakeDuration(in);
    image.journal = in.Number();
    image.is_live = in.Below(2) != 0;
    TakeUpdates(in, &image);
  }
  if (version >= 4) TakePlaces(in, &image);
  if (!in.AtEnd() || !IsConsistent(image) || !HasCountableBytes(image))
    return absl::DataLossError("the description of the session is invalid");
  return image;
}

}  // namespace kiln::sessions
