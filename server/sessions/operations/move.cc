#include "server/sessions/operations/move.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/check/check.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// A move goes through host memory in pieces of this size.
constexpr int64_t kMovePiece = 4 << 20;

// Copies a value to another. Each piece is a separate task, so that tasks of others can run in
// between.
class Moving : public std::enable_shared_from_this<Moving> {
 public:
  Moving(runtime::ThreadPool& copies, memory::Charge charge, runtime::ValuePointer source,
         runtime::ValuePointer target, buffers::Pool::Done done)
      : copies_(copies),
        charge_(std::move(charge)),
        source_(std::move(source)),
        target_(std::move(target)),
        done_(std::move(done)) {
    KILN_CHECK_EQ(source_->bytes(), target_->bytes());
  }

  void Continue() {
    copies_.Schedule([self = shared_from_this()] { self->ReadPiece(); });
  }

 private:
  void ReadPiece() {
    KILN_CHECK_LE(offset_, target_->bytes());
    const int64_t size = std::min(kMovePiece, target_->bytes() - offset_);
    if (size == 0) return done_(absl::OkStatus());
    piece_.resize(static_cast<size_t>(size));
    buffers::ReadWhole(*source_, offset_, absl::MakeSpan(piece_),
                       [self = shared_from_this()](const absl::Status& read) {
                         if (!read.ok()) return self->done_(read);
                         // This may be a device's thread, which must not block.
                         self->copies_.Schedule([self] { self->WritePiece(); });
                       });
  }
  void WritePiece() {
    buffers::FillWhole(*target_, offset_, piece_,
                       [self = shared_from_this()](const absl::Status& filled) {
                         if (!filled.ok()) return self->done_(filled);
                         self->offset_ += static_cast<int64_t>(self->piece_.size());
                         self->Continue();
                       });
  }

  runtime::ThreadPool& copies_;
  const memory::Charge charge_;
  const runtime::ValuePointer source_;
  const runtime::ValuePointer target_;
  const buffers::Pool::Done done_;
  std::string piece_;
  int64_t offset_ = 0;
};

void FinishMove(SessionState& session, uint64_t sequence, const runtime::ValuePointer& target,
                const absl::Status& moved) {
  const absl::Status status = moved.ok() ? moved : errors::WithBoundedMessage(moved);
  target->Resolve(status);
  {
    absl::MutexLock lock(&session.mutex);
    session.being_copied.erase(target);
    // A move that depended on a cancelled run fails again when it is executed again.
    if (!status.ok() && !absl::IsCancelled(status)) session.FailedLate(status);
    KILN_VALIDATE(session, session.entries());
  }
  session.Finish({.sequence = sequence, .error = status});
}

// Copies the value once it is available, then answers the operation.
void BeginMove(SessionState& session, uint64_t sequence, const runtime::ValuePointer& source,
               const runtime::ValuePointer& target) {
  const auto begin = [self = session.shared_from_this(), sequence, source,
                      target](const absl::Status& available) {
    if (!available.ok())
      return FinishMove(*self, sequence, target, runtime::DependencyError(available));
    // Includes staging memory for devices whose parts are not contiguous.
    const int64_t piece = std::min(kMovePiece, target->bytes());
    const auto copies = static_cast<int64_t>(2 + target->parts().size());
    auto charge = self->host->Reserve(memory::Use::kTransfers, copies * piece);
    if (!charge.ok()) return FinishMove(*self, sequence, target, charge.status());
    std::make_shared<Moving>(
        *self->services.copies, *std::move(charge), source, target,
        [self, sequence, source, target](const absl::Status& moved) {
          // After the staging memory is freed, and not on a device's thread.
          self->services.copies->Schedule([self, sequence, source, target, moved] {
            absl::Status status = self->devices.AfterFailure(*source, moved);
            status = self->devices.AfterFailure(*target, status);
            FinishMove(*self, sequence, target, status);
          });
        })
        ->Continue();
  };
  if (!source->AddWaiter(begin)) begin(source->status());
}

}  // namespace

void Move::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[0]);
  out.Number(source);
  out.Number(handle);
  Encode(out, placement);
}

Move Move::DecodeFromLog(uint64_t, Decoder& in) {
  Move move;
  move.source = in.Number();
  move.handle = in.Number();
  move.placement = DecodePlacement(in);
  return move;
}

void Move::Execute(SessionState& session, uint64_t sequence) {
  absl::Status status;
  runtime::ValuePointer value;
  std::vector<uint64_t> made = {handle};
  {
    absl::MutexLock lock(&session.mutex);
    status = session.handles.Reserve(made);
    if (status.ok()) {
      auto found = session.handles.Find(source);
      status = found.status();
      if (found.ok()) value = *std::move(found);
    } else {
      made.clear();  // the handle is in use and keeps its value
    }
  }
  if (status.ok()) status = placement.error;
  if (!status.ok()) return session.Refuse(sequence, made, status);
  const std::string encoded = session.Encoded(*this);
  if (value->resolved() && !value->status().ok()) {
    {
      // The failure follows from the session's state, so it is the same when the operation is
      // executed again.
      absl::MutexLock lock(&session.mutex);
      session.LogExecuted(sequence, encoded);
    }
    return session.Fail(sequence, made, runtime::DependencyError(value->status()));
  }
  runtime::ValuePointer target = value;
  const bool is_there = HasPlacement(session, *value, placement);
  if (!is_there) {
    auto allocated = Allocate(session, value->type(), placement);
    if (!allocated.ok()) return session.Refuse(sequence, made, allocated.status());
    target = *std::move(allocated);
  }
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.closed) {
      session.LogExecuted(sequence, encoded);
      session.handles.Bind({handle}, {target});
      if (!is_there) {
        session.being_copied.insert(target);
        session.pending.SetExecuted(sequence, PendingMove{value, target, std::move(placement)});
      }
      KILN_VALIDATE(session, session.entries());
    }
  }
  if (is_there) return session.Finish({.sequence = sequence});
  BeginMove(session, sequence, value, target);
}

absl::StatusOr<SavedMove> PendingMove::Save(CheckpointIndex& index) const {
  const auto saved_source = index.Of(source);
  if (!saved_source.ok()) return saved_source.status();
  const auto saved_target = index.Of(target);
  if (!saved_target.ok()) return saved_target.status();
  return SavedMove{*saved_source, *saved_target, placement};
}

void SavedMove::Encode(Encoder& out) const {
  out.Number(source);
  out.Number(target);
  sessions::Encode(out, placement);
}

SavedMove SavedMove::Decode(Decoder& in, const CheckpointSizes& sizes) {
  SavedMove move;
  move.source = in.Below(sizes.values);
  move.target = in.Below(sizes.values);
  move.placement = DecodePlacement(in);
  return move;
}

void SavedMove::Redo(SessionState& session, uint64_t sequence, size_t) const {
  runtime::ValuePointer from;
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return;
    from = session.restoration->values[source];
  }
  // An earlier operation has made it.
  KILN_CHECK(from != nullptr) << "operation " << sequence;
  absl::StatusOr<runtime::ValuePointer> to =
      from->resolved() && !from->status().ok()
          ? absl::StatusOr<runtime::ValuePointer>(runtime::DependencyError(from->status()))
          : Allocate(session, from->type(), placement);
  absl::Status error;
  if (!to.ok()) {
    error = errors::WithBoundedMessage(to.status());
    to = session.MakeFailed(error);
  }
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return;
    session.restoration->values[target] = *to;
    if (error.ok()) {
      session.being_copied.insert(*to);
      session.pending.SetExecuted(sequence, PendingMove{from, *to, placement});
    } else {
      session.FailedLate(error);
    }
  }
  if (!error.ok()) return session.Finish({.sequence = sequence, .error = error});
  BeginMove(session, sequence, from, *to);
}

}  // namespace kiln::sessions
