// Making images of sessions for a later daemon.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

using Kind = SessionImage::Value::Kind;

absl::Status Unknown(absl::string_view what) { return absl::FailedPreconditionError(what); }

// OK if the value's memory was not lost.
absl::Status LossOf(const buffers::Value& value) {
  if (value.pool() != nullptr && value.lost()) return value.pool()->LostError();
  for (const auto& part : value.parts())
    if (absl::Status status = LossOf(*part); !status.ok()) return status;
  return absl::OkStatus();
}

// Assigns each value and origin its index in the image, once.
class Places {
 public:
  explicit Places(SessionImage* image) : image_(*image) {}

  // Adds a value that a pending operation makes.
  absl::Status AddPending(const runtime::ValuePointer& value) {
    // The run has ended, and a part of its results may have been sent.
    if (value->resolved()) return Unknown("a run is ending on a device that hangs");
    // Equal results of a run are one value.
    if (!places_.contains(value.get())) places_[value.get()] = Add({.kind = Kind::kPending});
    return absl::OkStatus();
  }

  // Adds a value that has failed.
  void AddFailed(const runtime::ValuePointer& value, const absl::Status& error) {
    places_[value.get()] = Add({.kind = Kind::kFailed, .error = error});
  }

  absl::StatusOr<size_t> Of(const runtime::ValuePointer& value) {
    const auto known = places_.find(value.get());
    if (known != places_.end()) return known->second;
    if (!value->resolved()) return Unknown("an upload to its device is not finished");
    SessionImage::Value kept{.kind = Kind::kFailed, .error = value->status()};
    if (kept.error.ok()) kept.error = LossOf(*value);
    if (kept.error.ok()) {
      kept = {.kind = Kind::kBytes, .type = *value->type(), .value = value};
      kept.place.placement = value->placement();
      if (value->pool() != nullptr) {
        const std::string& device = value->pool()->device().info().name;
        if (device != image_.device) kept.place.device = device;
      }
    }
    return places_[value.get()] = Add(std::move(kept));
  }

  absl::StatusOr<size_t> Of(const std::shared_ptr<const ProgramOrigin>& origin) {
    if (origin->wire.empty()) return Unknown("one of its programs cannot be stored");
    const auto [entry, is_new] = origins_.emplace(origin.get(), image_.origins.size());
    if (is_new) image_.origins.push_back(origin);
    return entry->second;
  }

 private:
  size_t Add(SessionImage::Value value) {
    image_.values.push_back(std::move(value));
    return image_.values.size() - 1;
  }

  SessionImage& image_;
  absl::flat_hash_map<const buffers::Value*, size_t> places_;
  absl::flat_hash_map<const ProgramOrigin*, size_t> origins_;
};

absl::StatusOr<std::vector<size_t>> PlacesOf(const std::vector<runtime::ValuePointer>& values,
                                             Places& places) {
  std::vector<size_t> all;
  for (const runtime::ValuePointer& value : values) {
    const auto place = places.Of(value);
    if (!place.ok()) return place.status();
    all.push_back(*place);
  }
  return all;
}

struct Keep {
  using Result = absl::StatusOr<decltype(SessionImage::Pending::operation)>;

  Result operator()(const RunInFlight& run) const {
    SessionImage::Run kept;
    const auto origin = places.Of(run.program);
    if (!origin.ok()) return origin.status();
    auto inputs = PlacesOf(run.inputs, places);
    if (!inputs.ok()) return inputs.status();
    auto results = PlacesOf(run.results, places);
    if (!results.ok()) return results.status();
    return SessionImage::Run{*origin, run.bindings, *std::move(inputs), *std::move(results),
                             run.report_time};
  }
  Result operator()(const DefinitionInFlight& definition) const {
    const auto origin = places.Of(definition.program);
    if (!origin.ok()) return origin.status();
    return SessionImage::Definition{*origin};
  }
  Result operator()(const ReadInFlight& read) const {
    const auto value = places.Of(read.value);
    if (!value.ok()) return value.status();
    return SessionImage::Read{*value};
  }
  Result operator()(const MoveInFlight& move) const {
    const auto source = places.Of(move.source);
    if (!source.ok()) return source.status();
    const auto target = places.Of(move.target);
    if (!target.ok()) return target.status();
    return SessionImage::Move{*source, *target, move.place};
  }
  Result operator()(const BarrierInFlight&) const { return SessionImage::Barrier{}; }

  Places& places;
};

// Adds the results of a cancelled run that is still on the device: the client gets CANCELLED, and
// the run is not executed again.
void KeepCancelled(uint64_t sequence, const RunInFlight& run, Places& places, SessionImage* image) {
  const absl::Status error = runtime::CancelledRun();
  for (const runtime::ValuePointer& result : run.results) places.AddFailed(result, error);
  image->answers.push_back({.sequence = sequence, .error = error});
}

absl::Status KeepPending(const InFlightTable& in_flight, const UnfinishedRuns& runs, Places& places,
                         SessionImage* image) {
  std::vector<const InFlightTable::value_type*> sorted;
  for (const auto& entry : in_flight) {
    if (runs.IsCancelled(entry.first)) {
      KeepCancelled(entry.first, std::get<RunInFlight>(entry.second), places, image);
    } else {
      sorted.push_back(&entry);
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  for (const auto* entry : sorted) {
    if (const auto* move = std::get_if<MoveInFlight>(&entry->second)) {
      if (absl::Status status = places.AddPending(move->target); !status.ok()) return status;
    }
    const auto* run = std::get_if<RunInFlight>(&entry->second);
    if (run == nullptr) continue;
    for (const runtime::ValuePointer& result : run->results)
      if (absl::Status status = places.AddPending(result); !status.ok()) return status;
  }
  for (const auto* entry : sorted) {
    auto operation = std::visit(Keep{places}, entry->second);
    if (!operation.ok()) return operation.status();
    const UnfinishedRuns::Entry* unfinished = runs.Find(entry->first);
    if (auto* run = std::get_if<SessionImage::Run>(&*operation); run && unfinished) {
      for (const UnfinishedRuns::Update& update : unfinished->updates) {
        const auto before = places.Of(update.before);
        if (!before.ok()) return before.status();
        run->updates.push_back({update.handle, *before});
      }
    }
    image->pending.push_back({entry->first, *std::move(operation)});
  }
  return absl::OkStatus();
}

absl::Status KeepAnswers(const AnswerLog& log, Places& places, SessionImage* image) {
  for (const auto& answer : log.Unacknowledged()) {
    SessionImage::KeptAnswer kept{.sequence = answer->sequence,
                                  .error = answer->error,
                                  .digest = answer->digest,
                                  .device_seconds = answer->device_seconds};
    if (answer->value) {
      const auto place = places.Of(answer->value);
      if (!place.ok()) return place.status();
      // It was read before its device was lost.
      const SessionImage::Value& value = image->values[*place];
      if (value.kind == Kind::kFailed) kept.error = value.error;
      if (value.kind == Kind::kPending) return Unknown("the value of an answer is not available");
      if (value.kind == Kind::kBytes) kept.value = *place;
    }
    image->answers.push_back(std::move(kept));
  }
  return absl::OkStatus();
}

absl::Status KeepHandles(const HandleTable& handles, Places& places, SessionImage* image) {
  image->used_handles = handles.used();
  for (const auto& [handle, value] : handles.values()) {
    const auto place = places.Of(value);
    if (!place.ok()) return place.status();
    image->handles.emplace_back(handle, *place);
  }
  return absl::OkStatus();
}

absl::Status KeepPrograms(const ProgramTable& programs, Places& places, SessionImage* image) {
  image->used_programs = programs.used();
  for (const auto& [number, program] : programs.programs()) {
    SessionImage::Program kept{.number = number, .error = program.source.status()};
    if (kept.error.ok()) {
      const auto origin = places.Of(program.origin);
      if (!origin.ok()) return origin.status();
      kept.origin = *origin;
    }
    image->programs.push_back(std::move(kept));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SessionImage> Session::Freeze(const absl::Status& reason, absl::Duration patience) {
  const uint64_t executed = executor_.Pause();
  absl::MutexLock lock(&mutex_);
  if (closed_) return *closed_;
  // A run may be ending just now on a device that is not idle.
  const auto is_settled = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return resumption_ != nullptr || IsSettled(executed);
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_settled), patience);
  auto image = resumption_ ? MakeImageOfResumption() : MakeImage(executed);
  if (!image.ok()) return image.status();
  Describe(&*image);
  // The current journal is out of date with this image; the next daemon begins another.
  if (wants_protection()) {
    image->journal =
        1 + (protection_.journal ? protection_.journal->number() : protection_.last_number);
  }
  image->is_live = false;
  closed_ = reason;
  frozen_ = true;
  // After closed_ is set, so that a client whose upload fails after this is told why the session
  // ended.
  AddBlobs(&*image);
  return image;
}

void Session::Describe(SessionImage* image) const {
  image->generation = generation_;
  image->cancelled.assign(cancelled_.begin(), cancelled_.end());
  if (detached_)
    image->detached = SessionImage::Detached{detached_->name, detached_->keep, detached_->tensors};
  image->remaining =
      sink_ ? FullLease() : std::max(expires_ - services_.clock.steady(), absl::ZeroDuration());
}

void Session::AddBlobs(SessionImage* image) const {
  for (auto& [name, data] : services_.blobs->HeldBy(identity_.number)) {
    const int64_t size = data->size();
    image->blobs.push_back({std::move(name), size, std::move(data)});
  }
}

bool Session::IsSettled(uint64_t executed) const {
  if (executed - unfinished_.ended() != in_flight_.size()) return false;
  return std::none_of(in_flight_.begin(), in_flight_.end(), [](const auto& entry) {
    const auto* move = std::get_if<MoveInFlight>(&entry.second);
    if (move != nullptr && move->target->resolved()) return true;
    const auto* run = std::get_if<RunInFlight>(&entry.second);
    return run != nullptr && std::any_of(run->results.begin(), run->results.end(),
                                         [](const auto& value) { return value->resolved(); });
  });
}

absl::StatusOr<SessionImage> Session::MakeImage(uint64_t executed) const {
  if (executed - unfinished_.ended() != in_flight_.size())
    return Unknown("an operation that cannot be repeated is unfinished");
  SessionImage image;
  image.identity = identity_;
  image.user = user_->name;
  image.device = device().name();
  image.executed = executed;
  image.runs = runs_;
  image.device_seconds = device_seconds_;
  Places places(&image);
  absl::Status status = KeepPending(in_flight_, unfinished_runs_, places, &image);
  if (status.ok()) status = KeepAnswers(log_, places, &image);
  if (status.ok()) status = KeepHandles(handles_, places, &image);
  if (status.ok()) status = KeepPrograms(programs_, places, &image);
  if (!status.ok()) return status;
  return image;
}

// No operation of the client has been executed since the restoration. Operations that were executed
// again since are executed once more: clients accept answers that come twice.
absl::StatusOr<SessionImage> Session::MakeImageOfResumption() const {
  SessionImage image = *resumption_->image;
  image.blobs.clear();
  for (size_t i = 0; i < image.values.size(); ++i) {
    SessionImage::Value& kept = image.values[i];
    if (kept.kind != Kind::kBytes) continue;
    kept.value = resumption_->values[i];
    if (kept.value->lost()) return Unknown("its device was lost while the session was restored");
  }
  return image;
}

}  // namespace kiln::sessions
