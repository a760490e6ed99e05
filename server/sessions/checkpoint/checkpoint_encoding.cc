// Encodes checkpoints as bytes. Later builds read them: a change of the format needs a new version
// (kCheckpointVersion).
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/ops/rules/infer.h"
#include "proto/check/check.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/encoding.h"
#include "server/sessions/session_names.h"

namespace kiln::sessions {
namespace {

using Kind = Checkpoint::Value::Kind;

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
  out.Duration(identity.lease);
  out.Duration(std::min(identity.away_lease, identity.lease));
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
  identity.lease = in.Duration();
  identity.away_lease = in.Duration();
  identity.priority =
      in.Number() != 0 ? fairness::Priority::kBatch : fairness::Priority::kInteractive;
  identity.opened = absl::FromUnixNanos(in.Signed());
  if (identity.number <= 0 || identity.id.empty()) in.Fail();
  return identity;
}

void Put(Encoder& out, const Checkpoint::Value& value) {
  out.Number(static_cast<uint64_t>(value.kind));
  if (value.kind == Kind::kFailed) out.Status(value.error);
  if (value.kind == Kind::kBytes) out.Type(value.type);
}

Checkpoint::Value TakeValue(Decoder& in) {
  Checkpoint::Value value;
  value.kind = static_cast<Kind>(in.Below(3));
  if (value.kind == Kind::kFailed) {
    value.error = in.Status();
    if (value.error.ok()) in.Fail();
  }
  if (value.kind != Kind::kBytes) return value;
  value.type = in.Type();
  if (!in.ok() || !buffers::CheckTensorType(value.type).ok()) in.Fail();
  return value;
}

CheckpointSizes SizesOf(const Checkpoint& checkpoint) {
  return {checkpoint.values.size(), checkpoint.origins.size()};
}

void Put(Encoder& out, const SavedPending& pending) {
  out.Number(pending.sequence);
  Encode(out, pending.operation);
}

SavedPending TakePending(Decoder& in, const Checkpoint& checkpoint) {
  SavedPending pending;
  pending.sequence = in.Number();
  pending.operation = DecodeSaved(in, SizesOf(checkpoint));
  return pending;
}

void Put(Encoder& out, const Checkpoint::SavedAnswer& answer) {
  out.Number(answer.sequence);
  out.Status(answer.error);
  out.Number(answer.value ? *answer.value + 1 : 0);
  out.Text(answer.digest);
  out.Real(answer.device_seconds);
}

Checkpoint::SavedAnswer TakeAnswer(Decoder& in, size_t values) {
  Checkpoint::SavedAnswer answer;
  answer.sequence = in.Number();
  answer.error = in.Status();
  if (const size_t value = in.Below(values + 1); value > 0) answer.value = value - 1;
  answer.digest = std::string(in.Text());
  answer.device_seconds = in.Real();
  return answer;
}

void Put(Encoder& out, const std::optional<Park>& parked) {
  out.Number(parked ? 1 : 0);
  if (parked) EncodeParked(out, parked->name, parked->keep, parked->tensors);
}

std::optional<Park> TakeParked(Decoder& in) {
  if (in.Below(2) == 0) return std::nullopt;
  Park parked = DecodeParked(in);
  if (!CheckName("a session", parked.name).ok() || parked.tensors.size() > kNamedTensorsMax)
    in.Fail();
  return parked;
}

// Version 4 added this: the devices of values and programs, unless it is the session's device.
void PutPlacements(Encoder& out, const Checkpoint& checkpoint) {
  for (const Checkpoint::Value& value : checkpoint.values)
    if (value.kind == Kind::kBytes) Encode(out, value.placement);
  for (const auto& origin : checkpoint.origins) out.Texts(origin->devices);
}

void TakePlacements(Decoder& in, Checkpoint* checkpoint) {
  for (Checkpoint::Value& value : checkpoint->values) {
    if (value.kind != Kind::kBytes) continue;
    value.placement = DecodePlacement(in);
    const buffers::Placement* sharding = value.placement.sharding.get();
    if (sharding != nullptr &&
        !graph::CheckSpec(sharding->mesh, sharding->spec, value.type.shape, "").ok())
      in.Fail();
  }
  for (auto& origin : checkpoint->origins) {
    auto placed = std::make_shared<ProgramOrigin>(*origin);
    placed->devices = in.Texts();
    if (placed->devices.size() > static_cast<size_t>(graph::kMeshDevicesMax)) in.Fail();
    origin = std::move(placed);
  }
}

// Version 5 added this: the settings of programs' kernels.
void PutSettings(Encoder& out, const Checkpoint& checkpoint) {
  for (const auto& origin : checkpoint.origins) {
    out.Number(origin->settings);
    out.Number(origin->live ? 1 : 0);
  }
}

void TakeSettings(Decoder& in, Checkpoint* checkpoint) {
  for (auto& origin : checkpoint->origins) {
    auto settled = std::make_shared<ProgramOrigin>(*origin);
    settled->settings = in.Number();
    settled->live = in.Below(2) == 1;
    origin = std::move(settled);
  }
}

// Returns the sequence numbers of the pending operations; nullopt if they contradict each other or
// the values. `made`: gets the values that they make. Each is made by one operation, which precedes
// those that use it.
std::optional<absl::flat_hash_set<uint64_t>> CheckPending(const Checkpoint& checkpoint,
                                                          absl::flat_hash_set<size_t>* made) {
  const auto is_there = [&](size_t value) {
    return checkpoint.values[value].kind != Kind::kPending || made->contains(value);
  };
  const auto is_new = [&](size_t value) {
    return checkpoint.values[value].kind == Kind::kPending && !made->contains(value);
  };
  uint64_t before = 0;
  absl::flat_hash_set<uint64_t> sequences;
  for (const SavedPending& pending : checkpoint.pending) {
    if (pending.sequence <= before || pending.sequence > checkpoint.executed) return std::nullopt;
    before = pending.sequence;
    sequences.insert(before);
    const std::vector<size_t> uses = Uses(pending.operation);
    const std::vector<size_t> makes = Makes(pending.operation);
    if (!std::all_of(uses.begin(), uses.end(), is_there) ||
        !std::all_of(makes.begin(), makes.end(), is_new))
      return std::nullopt;
    made->insert(makes.begin(), makes.end());  // equal results of a run are one value
  }
  return sequences;
}

// Checks the references between the tables.
bool IsConsistent(const Checkpoint& checkpoint) {
  absl::flat_hash_set<size_t> made;
  const auto pending = CheckPending(checkpoint, &made);
  if (!pending) return false;
  absl::flat_hash_set<uint64_t> seen;
  for (const auto& [handle, value] : checkpoint.handles) {
    const bool is_there = checkpoint.values[value].kind != Kind::kPending || made.contains(value);
    if (!checkpoint.used_handles.Contains(handle) || !seen.insert(handle).second || !is_there)
      return false;
  }
  seen.clear();
  for (const Checkpoint::Program& program : checkpoint.programs)
    if (!checkpoint.used_programs.Contains(program.number) || !seen.insert(program.number).second)
      return false;
  uint64_t before = checkpoint.executed;
  for (const ReceivedCancel& cancelled : checkpoint.cancelled) {
    if (cancelled.cancel <= before) return false;
    before = cancelled.cancel;
  }
  seen.clear();
  for (const Checkpoint::SavedAnswer& answer : checkpoint.answers) {
    if (answer.sequence == 0 || answer.sequence > checkpoint.executed ||
        pending->contains(answer.sequence) || !seen.insert(answer.sequence).second)
      return false;
    if (answer.value && checkpoint.values[*answer.value].kind != Kind::kBytes) return false;
  }
  return true;
}

// True if the sum of the sizes fits an int64.
bool HasCountableBytes(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const Checkpoint::Value& value : checkpoint.values)
    if (value.kind == Kind::kBytes && __builtin_add_overflow(bytes, value.type.bytes(), &bytes))
      return false;
  for (const Checkpoint::Blob& blob : checkpoint.blobs)
    if (__builtin_add_overflow(bytes, blob.size, &bytes)) return false;
  return true;
}

template <typename T>
void PutAll(Encoder& out, const std::vector<T>& all) {
  out.Number(all.size());
  for (const T& each : all) Put(out, each);
}

}  // namespace

void Checkpoint::Validate() const {
  KILN_CHECK(IsConsistent(*this)) << "session " << identity.name;
}

std::string Encode(const Checkpoint& checkpoint) {
  Encoder out;
  Put(out, checkpoint.identity);
  out.Number(checkpoint.generation);
  Put(out, checkpoint.parked);
  out.Text(checkpoint.user);
  out.Text(checkpoint.device);
  out.Duration(checkpoint.remaining);
  out.Number(checkpoint.executed);
  out.Signed(checkpoint.runs);
  out.Real(checkpoint.device_seconds);
  out.Number(checkpoint.origins.size());
  for (const auto& origin : checkpoint.origins) {
    out.Text(origin->wire);
    out.Text(origin->name);
  }
  PutAll(out, checkpoint.values);
  PutAll(out, checkpoint.pending);
  PutAll(out, checkpoint.answers);
  Put(out, checkpoint.used_handles);
  out.Number(checkpoint.handles.size());
  for (const auto& [handle, value] : checkpoint.handles) {
    out.Number(handle);
    out.Number(value);
  }
  Put(out, checkpoint.used_programs);
  out.Number(checkpoint.programs.size());
  for (const Checkpoint::Program& program : checkpoint.programs) {
    out.Number(program.number);
    out.Status(program.error);
    if (program.error.ok()) out.Number(program.origin);
  }
  out.Number(checkpoint.blobs.size());
  for (const Checkpoint::Blob& blob : checkpoint.blobs) {
    out.Text(blob.name);
    out.Signed(blob.size);
  }
  out.Number(checkpoint.cancelled.size());
  for (const ReceivedCancel& cancelled : checkpoint.cancelled) {
    out.Number(cancelled.first);
    out.Number(cancelled.cancel);
  }
  out.Duration(checkpoint.identity.checkpoint_interval);
  out.Number(checkpoint.log);
  out.Number(checkpoint.is_live ? 1 : 0);
  for (const SavedPending& pending : checkpoint.pending) EncodeMore(out, pending.operation);
  PutPlacements(out, checkpoint);
  PutSettings(out, checkpoint);
  return out.Take();
}

absl::StatusOr<Checkpoint> Decode(absl::string_view bytes, uint32_t version) {
  Decoder in(bytes);
  Checkpoint checkpoint;
  const auto repeat = [&](const auto& take) {
    for (size_t count = in.Count(); count > 0 && in.ok(); --count) take();
  };
  checkpoint.identity = TakeIdentity(in);
  checkpoint.generation = in.Number();
  checkpoint.parked = TakeParked(in);
  checkpoint.user = std::string(in.Text());
  checkpoint.device = std::string(in.Text());
  checkpoint.remaining = in.Duration();
  checkpoint.executed = in.Number();
  checkpoint.runs = in.Signed();
  checkpoint.device_seconds = in.Real();
  repeat([&] {
    auto origin = std::make_shared<ProgramOrigin>();
    origin->wire = std::string(in.Text());
    origin->name = std::string(in.Text());
    checkpoint.origins.push_back(std::move(origin));
  });
  repeat([&] { checkpoint.values.push_back(TakeValue(in)); });
  repeat([&] { checkpoint.pending.push_back(TakePending(in, checkpoint)); });
  repeat([&] { checkpoint.answers.push_back(TakeAnswer(in, checkpoint.values.size())); });
  checkpoint.used_handles = TakeIds(in);
  repeat([&] {
    const uint64_t handle = in.Number();
    checkpoint.handles.emplace_back(handle, in.Below(checkpoint.values.size()));
  });
  checkpoint.used_programs = TakeIds(in);
  repeat([&] {
    Checkpoint::Program program;
    program.number = in.Number();
    program.error = in.Status();
    if (program.error.ok()) program.origin = in.Below(checkpoint.origins.size());
    checkpoint.programs.push_back(std::move(program));
  });
  repeat([&] {
    Checkpoint::Blob blob;
    blob.name = std::string(in.Text());
    blob.size = in.Signed();
    if (blob.size < 0) in.Fail();
    checkpoint.blobs.push_back(std::move(blob));
  });
  if (version >= 2) {
    repeat([&] {
      const uint64_t first = in.Number();
      checkpoint.cancelled.push_back({first, in.Number()});
    });
  }
  if (version >= 3) {
    checkpoint.identity.checkpoint_interval = in.Duration();
    checkpoint.log = in.Number();
    checkpoint.is_live = in.Below(2) != 0;
    for (SavedPending& pending : checkpoint.pending)
      DecodeMore(in, SizesOf(checkpoint), &pending.operation);
  }
  if (version >= 4) TakePlacements(in, &checkpoint);
  if (version >= 5) TakeSettings(in, &checkpoint);
  if (!in.AtEnd() || !IsConsistent(checkpoint) || !HasCountableBytes(checkpoint))
    return absl::DataLossError("the description of the session is invalid");
  return checkpoint;
}

}  // namespace kiln::sessions
