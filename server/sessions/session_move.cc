// Placement of values: allocation for a placement, and copies between placements.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

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
        done_(std::move(done)) {}

  void Continue() {
    copies_.Schedule([self = shared_from_this()] { self->ReadPiece(); });
  }

 private:
  void ReadPiece() {
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

}  // namespace

absl::StatusOr<runtime::ValuePointer> Session::AllocateAt(
    std::shared_ptr<const buffers::TensorType> type, const Place& place) {
  if (!place.error.ok()) return place.error;
  const auto on = [&](const std::string& device, std::shared_ptr<const buffers::TensorType> part)
      -> absl::StatusOr<runtime::ValuePointer> {
    const auto used = device.empty() ? &devices_.home() : devices_.Find(device);
    if (!used.ok()) return used.status();
    runtime::ManagedDevice& managed = *(*used)->device;
    if (absl::Status status = managed.CheckUsable(false); !status.ok()) return status;
    auto value = managed.pool()->Allocate(std::move(part), (*used)->account);
    if (!value.ok()) return managed.AfterFailure(value.status());
    return value;
  };
  if (!place.placement) return on(place.device, std::move(type));
  const buffers::Placement& placement = *place.placement;
  if (absl::Status status = graph::CheckSpec(placement.mesh, placement.spec, type->shape,
                                             absl::StrCat("the tensor ", type->ToString()));
      !status.ok())
    return errors::WithReason(absl::InvalidArgumentError(status.message()), "BAD_PLACEMENT");
  return buffers::AllocateParts(std::move(type), place.placement,
                                [&](size_t at, std::shared_ptr<const buffers::TensorType> part) {
                                  return on(placement.devices[at], std::move(part));
                                });
}

bool Session::LiesAt(const buffers::Value& value, const Place& place) const {
  if (place.placement) {
    return value.placement() != nullptr &&
           place.placement->IsSameAs(*value.placement(), value.type()->shape.size());
  }
  return value.pool() != nullptr && value.pool()->device().info().name ==
                                        (place.device.empty() ? device().name() : place.device);
}

absl::Status Session::CheckLiesOn(const runtime::Program& program,
                                  absl::Span<const runtime::ValuePointer> inputs) {
  const runtime::Signature& signature = program.signature();
  // Then runtime::CheckInputs has checked the parts.
  if (!signature.input_placements.empty()) return absl::OkStatus();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int member = signature.input_members.empty() ? 0 : signature.input_members[i];
    const runtime::ManagedDevice& wanted = program.sharded().device(member);
    if (inputs[i]->pool() == wanted.pool().get() || inputs[i]->pool() == nullptr) continue;
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "input ", i, " is on ", inputs[i]->pool()->device().info().name,
                                  ", but the program needs it on ", wanted.name(),
                                  "; copy it there (kiln.shard, Tensor.to)")),
                              "INPUT_PLACEMENT", {{"input", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

void Session::Execute(uint64_t sequence, Move& operation) {
  absl::Status status;
  runtime::ValuePointer source;
  {
    absl::MutexLock lock(&mutex_);
    status = handles_.Reserve({operation.handle});
    if (status.ok()) {
      auto found = handles_.Find(operation.source);
      status = found.status();
      if (found.ok()) source = *std::move(found);
    } else {
      operation.handle = 0;  // it is in use and keeps its value
    }
  }
  const std::vector<uint64_t> made =
      operation.handle == 0 ? std::vector<uint64_t>() : std::vector<uint64_t>{operation.handle};
  if (status.ok()) status = operation.place.error;
  if (!status.ok()) return Refuse(sequence, made, status);
  const std::string encoded = wants_protection() ? EncodeOperation(operation) : "";
  if (source->resolved() && !source->status().ok()) {
    {
      // The failure follows from the session's state, so it is the same when the operation is
      // executed again.
      absl::MutexLock lock(&mutex_);
      JournalExecuted(sequence, encoded);
    }
    return Fail(sequence, made, runtime::DependencyError(source->status()));
  }
  runtime::ValuePointer target = source;
  const bool lies_there = LiesAt(*source, operation.place);
  if (!lies_there) {
    auto allocated = AllocateAt(source->type(), operation.place);
    if (!allocated.ok()) return Refuse(sequence, made, allocated.status());
    target = *std::move(allocated);
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      JournalExecuted(sequence, encoded);
      handles_.Bind({operation.handle}, {target});
      if (!lies_there) {
        uploads_.insert(target);
        in_flight_.emplace(sequence, MoveInFlight{source, target, std::move(operation.place)});
      }
    }
  }
  if (lies_there) return Finish({.sequence = sequence});
  BeginMove(sequence, source, target);
}

void Session::BeginMove(uint64_t sequence, const runtime::ValuePointer& source,
                        const runtime::ValuePointer& target) {
  const auto begin = [self = shared_from_this(), sequence, source,
                      target](const absl::Status& there) {
    if (!there.ok()) return self->FinishMove(sequence, target, runtime::DependencyError(there));
    // Includes staging memory for devices whose parts are not contiguous.
    const int64_t piece = std::min(kMovePiece, target->bytes());
    const auto copies = static_cast<int64_t>(2 + target->parts().size());
    auto charge = self->host_->Reserve(memory::Use::kTransfers, copies * piece);
    if (!charge.ok()) return self->FinishMove(sequence, target, charge.status());
    std::make_shared<Moving>(
        *self->services_.copies, *std::move(charge), source, target,
        [self, sequence, source, target](const absl::Status& moved) {
          // After the staging memory is freed, and not on a device's thread.
          self->services_.copies->Schedule([self, sequence, source, target, moved] {
            absl::Status status = self->devices_.AfterFailure(*source, moved);
            status = self->devices_.AfterFailure(*target, status);
            self->FinishMove(sequence, target, status);
          });
        })
        ->Continue();
  };
  if (!source->AddWaiter(begin)) begin(source->status());
}

void Session::FinishMove(uint64_t sequence, const runtime::ValuePointer& target,
                         const absl::Status& moved) {
  const absl::Status status = moved.ok() ? moved : errors::WithBoundedMessage(moved);
  target->Resolve(status);
  {
    absl::MutexLock lock(&mutex_);
    uploads_.erase(target);
    // A move that depended on a cancelled run fails again when it is executed again.
    if (!status.ok() && !absl::IsCancelled(status)) FailedLate(status);
  }
  Finish({.sequence = sequence, .error = status});
}

}  // namespace kiln::sessions
