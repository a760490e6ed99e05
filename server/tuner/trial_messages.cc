#include "server/tuner/trial_messages.h"

#include <cmath>
#include <limits>
#include <utility>

#include "compiler/workers/message.h"
#include "proto/coding/coding.h"

namespace kiln::tuner {
namespace {

void PutRequest(ByteWriter& out, const OpenRequest& open) {
  out.Field(open.kernel);
  out.Field(open.hardware);
  out.Fixed64(open.seed);
  out.Fixed64(open.memory_bytes_max);
}
void TakeRequest(ByteReader& in, OpenRequest* open) {
  open->kernel = in.Field();
  open->hardware = in.Field();
  open->seed = in.Fixed64();
  open->memory_bytes_max = in.Fixed64();
}

void PutInputs(ByteWriter& out, const Inputs& inputs) {
  out.Number(static_cast<uint64_t>(inputs.sample));
  out.Real(inputs.perturbation);
  out.Fixed64(inputs.seed);
}
Inputs TakeInputs(ByteReader& in) {
  Inputs inputs;
  inputs.sample = kernel::Samples()[in.Below(kernel::Samples().size())];
  inputs.perturbation = in.Real();
  if (!(inputs.perturbation >= 0 && inputs.perturbation < 1)) in.Fail();
  inputs.seed = in.Fixed64();
  return inputs;
}
double TakeSeconds(ByteReader& in) {
  const double seconds = in.Real();
  if (!std::isfinite(seconds) || seconds < 0) in.Fail();
  return seconds;
}

void PutRequest(ByteWriter& out, const PrepareRequest& prepare) { PutInputs(out, prepare.inputs); }
void TakeRequest(ByteReader& in, PrepareRequest* prepare) { prepare->inputs = TakeInputs(in); }

void PutRequest(ByteWriter& out, const LoadRequest& load) {
  out.Number(load.trial);
  out.Number(load.unloaded.size());
  for (const uint64_t trial : load.unloaded) out.Number(trial);
  out.Number(load.steps.size());
  for (const TrialStep& step : load.steps) {
    out.Field(step.image.Serialize());
    out.Number(step.arguments.size());
    for (const int argument : step.arguments) out.Number(static_cast<uint64_t>(argument));
  }
}
void TakeRequest(ByteReader& in, LoadRequest* load) {
  load->trial = in.Number();
  load->unloaded.resize(in.Count());
  for (uint64_t& trial : load->unloaded) trial = in.Number();
  load->steps.resize(in.Count());
  for (TrialStep& step : load->steps) {
    if (!drivers::KernelImage::Deserialize(std::string(in.Field()), &step.image)) in.Fail();
    step.arguments.resize(in.Count());
    for (int& argument : step.arguments)
      argument = static_cast<int>(in.Below(std::numeric_limits<int>::max()));
  }
}

void PutRequest(ByteWriter& out, const TimeRequest& time) {
  out.Number(time.trial);
  out.Number(static_cast<uint64_t>(time.times));
  out.Real(time.seconds_max);
}
void TakeRequest(ByteReader& in, TimeRequest* time) {
  time->trial = in.Number();
  time->times = static_cast<int>(in.Below(kTimesMax + 1));
  if (time->times == 0) in.Fail();
  time->seconds_max = TakeSeconds(in);
}

void PutRequest(ByteWriter& out, const RunRequest& run) {
  out.Number(run.trial);
  PutInputs(out, run.inputs);
  out.Real(run.seconds_max);
}
void TakeRequest(ByteReader& in, RunRequest* run) {
  run->trial = in.Number();
  run->inputs = TakeInputs(in);
  run->seconds_max = TakeSeconds(in);
}

// Makes an empty request of the kind with this index in TrialRequest.
template <size_t... kIndexes>
TrialRequest EmptyRequest(size_t kind, std::index_sequence<kIndexes...>) {
  TrialRequest request;
  ((kind == kIndexes ? (void)request.emplace<kIndexes>() : (void)0), ...);
  return request;
}

}  // namespace

std::string EncodeRequest(uint64_t number, const TrialRequest& request) {
  ByteWriter out;
  out.Fixed64(number);
  out.Number(request.index());
  std::visit([&out](const auto& one) { PutRequest(out, one); }, request);
  return out.Take();
}

bool DecodeRequest(std::string_view bytes, uint64_t* number, TrialRequest* request) {
  ByteReader in(bytes);
  *number = in.Fixed64();
  constexpr size_t kKinds = std::variant_size_v<TrialRequest>;
  *request = EmptyRequest(in.Below(kKinds), std::make_index_sequence<kKinds>());
  std::visit([&in](auto& one) { TakeRequest(in, &one); }, *request);
  return in.AtEnd();
}

std::string EncodeTrialAnswer(uint64_t number, const absl::StatusOr<double>& answer) {
  ByteWriter out;
  out.Fixed64(number);
  out.Number(answer.ok() ? 1 : 0);
  if (answer.ok()) {
    out.Real(*answer);
  } else {
    workers::PutStatus(out, answer.status());
  }
  return out.Take();
}

bool DecodeTrialAnswer(std::string_view bytes, uint64_t number, absl::StatusOr<double>* answer) {
  ByteReader in(bytes);
  if (in.Fixed64() != number) return false;
  if (in.Below(2) == 1) {
    const double seconds = TakeSeconds(in);
    if (in.AtEnd()) *answer = seconds;
  } else {
    absl::Status status = workers::TakeStatus(in);
    if (in.AtEnd()) *answer = std::move(status);
  }
  return in.AtEnd();
}

}  // namespace kiln::tuner
