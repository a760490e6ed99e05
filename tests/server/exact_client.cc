#include "tests/server/exact_client.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::testing {
namespace {

// Above it the smallest number that is written would be rounded away.
constexpr float kLargest = 1e6f;

v1::Graph AccumulateOnly() {
  v1::Graph graph = AccumulateGraph(1);
  graph.clear_outputs();
  return graph;
}

}  // namespace

std::vector<Exact> Model::First() {
  return {{Define(1, AddGraph(1)), {}}, {Define(2, AccumulateOnly()), {}}};
}

Exact Model::Next(Random& random) {
  const uint64_t kind = random() % 100;
  // Fewer values than the number of tensors that Detach may name.
  if (values_.size() > 2000 || too_large_) return NextRelease(random);
  if (values_.size() < 4 || kind < 10) return NextWrite(random);
  if (kind < 30) return NextAdd(random);
  if (kind < 65) return NextAccumulate(random);
  if (kind < 80) return NextRead(random);
  if (kind < 85) return {Barrier(), {}};
  if (kind < 90) return NextMistake(random);
  if (values_.size() < 32) return NextAdd(random);
  return NextRelease(random);
}

std::vector<Exact> Model::Last() const {
  std::vector<Exact> reads;
  for (const auto& [handle, value] : values_) reads.push_back({Read(handle), {value, 0}});
  return reads;
}

Exact Model::Leave(const std::string& name) const {
  Names tensors;
  for (const auto& [handle, value] : values_) tensors.emplace_back(absl::StrCat(handle), handle);
  return {Detach(name, 3600, tensors), {}};
}

std::vector<Exact> Model::DefineAgain() {
  programs_ += 2;
  return {{Define(programs_, AddGraph(1)), {}}, {Define(programs_ + 1, AccumulateOnly()), {}}};
}

uint64_t Model::Any(Random& random) const {
  return std::next(values_.begin(), static_cast<int64_t>(random() % values_.size()))->first;
}

Exact Model::NextWrite(Random& random) {
  const auto value = static_cast<float>(1 + random() % 1000) / 7;
  values_[next_] = value;
  return {Write(next_++, {value}), {}};
}

Exact Model::NextAdd(Random& random) {
  const uint64_t x = Any(random), y = Any(random);
  values_[next_] = Sum(next_, values_[x] + values_[y]);
  return {RunProgram(programs_, {x, y}, {next_++}), {}};
}

Exact Model::NextAccumulate(Random& random) {
  const uint64_t x = Any(random), y = Any(random);
  values_[x] = Sum(x, values_[x] + values_[y]);
  return {RunProgram(programs_ + 1, {x, y}, {}), {}};
}

Exact Model::NextRead(Random& random) {
  const uint64_t handle = Any(random);
  return {Read(handle), {values_[handle], 0}};
}

float Model::Sum(uint64_t handle, float sum) {
  if (sum > kLargest) too_large_ = handle;
  return sum;
}

Exact Model::NextRelease(Random& random) {
  const uint64_t handle = too_large_ ? *too_large_ : Any(random);
  too_large_.reset();
  values_.erase(handle);
  return {Release({handle}), {}};
}

Exact Model::NextMistake(Random& random) {
  if (random() % 2 == 0) return {Write(Any(random), {1}), {std::nullopt, grpc::INVALID_ARGUMENT}};
  return {Read(next_ + 1'000'000'000), {std::nullopt, grpc::NOT_FOUND}};
}

void Sender::Send(Exact operation) {
  // Set before the operation has a number, or it would acknowledge itself if nothing else is in
  // flight.
  operation.first.set_acknowledged(Acknowledged());
  const uint64_t sequence = next_++;
  const Exact& kept = pending_[sequence] = std::move(operation);
  if (!stream_) return;
  held_.push_back(kept.first);
  if (held_.size() > sequence % 7) SendHeld();
}

void Sender::SendHeld() {
  if (!held_.empty()) stream_->SendTogether(held_, next_ - held_.size());
  held_.clear();
}

void Sender::AnswerAllBut(size_t count) {
  while (pending_.size() > count && wrong_.empty()) {
    if (!stream_ && !Attach()) return;
    SendHeld();
    const auto& [sequence, operation] = *pending_.begin();
    const v1::Result result = stream_->Answer(sequence);
    if (result.error().code() == -1) {
      GoOn(sequence);
      continue;
    }
    Check(sequence, operation.second, result);
    pending_.erase(pending_.begin());
  }
}

void Sender::GoOn(uint64_t oldest) {
  if (stream_->End().error_code() == grpc::DEADLINE_EXCEEDED &&
      std::exchange(missed_, oldest) == oldest) {
    wrong_ = absl::StrCat("operation ", oldest, " is not answered");
  }
  Cut();
}

void Sender::Cut() {
  if (stream_) stream_->Drop();
  stream_.reset();
  held_.clear();
}

uint64_t Sender::Acknowledged() const {
  return pending_.empty() ? next_ - 1 : pending_.begin()->first - 1;
}

bool Sender::Attach() {
  grpc::Status why;
  stream_ = Reattach(address_, client_, Acknowledged(), &why);
  if (!stream_) {
    has_lost_session_ = true;
    wrong_ = absl::StrCat("the session is lost: ", why.error_message());
    return false;
  }
  if (stream_->last_sequence() < Acknowledged()) {
    wrong_ = absl::StrCat("operation ", Acknowledged(), " has been answered, but the last that ",
                          "was received is ", stream_->last_sequence());
  }
  for (auto next = pending_.upper_bound(stream_->last_sequence()); next != pending_.end(); ++next)
    stream_->Send(next->second.first, next->first);
  return wrong_.empty();
}

void Sender::Check(uint64_t sequence, const Expected& expected, const v1::Result& result) {
  if (result.error().code() != expected.code) {
    wrong_ = absl::StrCat("operation ", sequence, ": ", result.error().message());
    return;
  }
  if (stream_->received().at(sequence) != 1) {
    wrong_ = absl::StrCat("operation ", sequence, " was answered more than once");
    return;
  }
  if (!expected.read) return;
  const std::vector<float> read = Floats(result.data());
  // Compares bit for bit.
  if (read.size() == 1 && std::memcmp(&read[0], &*expected.read, sizeof(float)) == 0) return;
  wrong_ = absl::StrCat("operation ", sequence, " read ", read.empty() ? -1 : read[0], ", not ",
                        *expected.read);
}

}  // namespace kiln::testing
