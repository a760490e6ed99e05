#include "server/sessions/operations/park.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

absl::Status CheckNames(const Park& park) {
  if (absl::Status status = CheckName("a session", park.name); !status.ok()) return status;
  if (park.tensors.size() > kNamedTensorsMax) {
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            park.tensors.size(), " tensors are named, but at most ", kNamedTensorsMax, " may be")),
        "TOO_MANY_NAMES", {{"limit", absl::StrCat(kNamedTensorsMax)}});
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const NamedHandle& tensor : park.tensors) {
    if (absl::Status status = CheckName("a tensor", tensor.name); !status.ok()) return status;
    if (!seen.insert(tensor.name).second) {
      return errors::WithReason(
          absl::InvalidArgumentError(absl::StrCat("two tensors have the name ", tensor.name)),
          "BAD_NAME", {{"name", tensor.name}});
    }
  }
  return absl::OkStatus();
}

// Takes the name and the named tensors.
absl::Status TakeName(SessionState& session, Park& park) {
  session.mutex.AssertHeld();
  for (const NamedHandle& tensor : park.tensors)
    if (const auto value = session.handles.Find(tensor.handle); !value.ok()) return value.status();
  auto charge = session.host->Reserve(memory::Use::kHandles, Parked::BytesOf(park.tensors));
  if (!charge.ok()) return charge.status();
  const absl::Status claimed =
      session.services.names->Claim(session.user->name, park.name, session.identity.number);
  if (!claimed.ok()) return claimed;
  const absl::Duration keep = park.keep > absl::ZeroDuration()
                                  ? std::min(park.keep, session.services.park_max)
                                  : session.identity.lease;
  session.parked.emplace(
      Parked{std::move(park.name), keep, std::move(park.tensors), *std::move(charge)});
  return absl::OkStatus();
}

}  // namespace

int64_t Park::bytes() const {
  int64_t bytes = HeldBy(name) + HeldBy(tensors);
  for (const NamedHandle& tensor : tensors) bytes += HeldBy(tensor.name);
  return bytes;
}

void EncodeParked(Encoder& out, const std::string& name, absl::Duration keep,
                  const std::vector<NamedHandle>& tensors) {
  out.Text(name);
  out.Duration(keep);
  out.Number(tensors.size());
  for (const NamedHandle& tensor : tensors) {
    out.Text(tensor.name);
    out.Number(tensor.handle);
  }
}

Park DecodeParked(Decoder& in) {
  Park park;
  park.name = std::string(in.Text());
  park.keep = in.Duration();
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    park.tensors.push_back({std::move(name), in.Number()});
  }
  return park;
}

void Park::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[0]);
  EncodeParked(out, name, keep, tensors);
}

Park Park::DecodeFromLog(uint64_t, Decoder& in) { return DecodeParked(in); }

void Park::Execute(SessionState& session, uint64_t sequence) {
  absl::Status status = CheckNames(*this);
  const std::string encoded = session.Encoded(*this);
  // The other tensors and programs, which have no name any more. Destroyed without the lock,
  // because they have their own locks.
  std::vector<runtime::ValuePointer> values;
  std::map<uint64_t, DefinedProgram> programs;
  if (status.ok()) {
    absl::MutexLock lock(&session.mutex);
    if (session.closed) return;
    status = TakeName(session, *this);
    if (status.ok()) {
      absl::flat_hash_set<uint64_t> named;
      for (const NamedHandle& tensor : session.parked->tensors) named.insert(tensor.handle);
      values = session.handles.ReleaseAllBut(named);
      KILN_CHECK_EQ(session.handles.values().size(), named.size());
      programs = session.programs.TakeAll();
      session.LogExecuted(sequence, encoded);
      if (session.recorder) session.recorder->Parked();
      KILN_VALIDATE(session, session.entries());
    }
  }
  if (!status.ok()) return session.Refuse(sequence, {}, status);
  // Earlier Writes hold the uploads that they need.
  session.services.blobs->CloseSession(session.identity.number);
  session.Finish({.sequence = sequence});
}

}  // namespace kiln::sessions
