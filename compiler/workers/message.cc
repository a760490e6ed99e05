#include "compiler/workers/message.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"

namespace kiln::workers {
namespace {

void PutTarget(ByteWriter& out, const drivers::Target& target) {
  // Fails to compile if a field is added and not sent.
  const auto& [architecture, processor, features, variant, limits, capabilities, costs, rates,
               finisher] = target;
  const auto& [driver, device, version] = finisher;
  for (const std::string* text :
       {&architecture, &processor, &features, &variant, &driver, &device, &version})
    out.Field(*text);
  out.PlainField(limits);
  out.PlainField(capabilities);
  out.PlainField(costs);
  out.PlainField(rates);
}

void TakeTarget(ByteReader& in, drivers::Target* target) {
  drivers::Finisher& finisher = target->finisher;
  for (std::string* text :
       {&target->architecture, &target->processor, &target->features, &target->variant,
        &finisher.driver, &finisher.device, &finisher.version})
    *text = in.Field();
  in.PlainField(&target->limits);
  in.PlainField(&target->capabilities);
  in.PlainField(&target->costs);
  in.PlainField(&target->rates);
}

// The field is empty if there is no unfinished image.
std::optional<drivers::KernelImage> TakeUnfinished(ByteReader& in) {
  const std::string bytes(in.Field());
  if (bytes.empty()) return std::nullopt;
  drivers::KernelImage image;
  if (!drivers::KernelImage::Deserialize(bytes, &image)) in.Fail();
  return image;
}

void PutRehearsal(ByteWriter& out, const std::optional<Rehearsal>& rehearsal) {
  out.PlainField(rehearsal.has_value());
  if (!rehearsal) return;
  // Fails to compile if a field is added and not sent.
  const auto& [graph, key, choices, disabled_passes, setting] = *rehearsal;
  for (const std::string* text : {&graph, &key, &choices, &setting}) out.Field(*text);
  for (const std::string& pass : disabled_passes) out.Field(pass);
}

// Its passes extend to the end of the message.
std::optional<Rehearsal> TakeRehearsal(ByteReader& in) {
  uint8_t is_there = 0;
  in.PlainField(&is_there);
  if (is_there > 1) in.Fail();
  if (!in.ok() || is_there == 0) return std::nullopt;
  Rehearsal rehearsal;
  for (std::string* text :
       {&rehearsal.graph, &rehearsal.key, &rehearsal.choices, &rehearsal.setting})
    *text = in.Field();
  while (in.ok() && !in.AtEnd()) rehearsal.disabled_passes.emplace_back(in.Field());
  return rehearsal;
}

drivers::KernelImage TakeImage(ByteReader& in, const KernelJob& job) {
  drivers::KernelImage image;
  const bool is_image = drivers::KernelImage::Deserialize(std::string(in.Field()), &image);
  if (!is_image || image.name != job.name || image.architecture != job.target.architecture)
    in.Fail();
  return image;
}

}  // namespace

void PutStatus(ByteWriter& out, const absl::Status& status) {
  out.PlainField(status.raw_code());
  out.Field({status.message().data(), status.message().size()});
  status.ForEachPayload([&out](absl::string_view url, const absl::Cord& payload) {
    out.Field({url.data(), url.size()});
    out.Field(std::string(payload));
  });
}

absl::Status TakeStatus(ByteReader& in) {
  int code = 0;
  in.PlainField(&code);
  const std::string message(in.Field());
  // An error's code must be one of the canonical ones.
  if (code <= 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) in.Fail();
  absl::Status status(static_cast<absl::StatusCode>(code), message);
  while (in.ok() && !in.AtEnd()) {
    const std::string url(in.Field());
    status.SetPayload(url, absl::Cord(std::string(in.Field())));
  }
  return status;
}

std::string EncodeJob(uint64_t number, const KernelJob& job) {
  ByteWriter out;
  out.PlainField(number);
  out.Field(job.name);
  out.Field(job.kernel);
  out.Field(job.schedule);
  PutTarget(out, job.target);
  out.Field(job.unfinished ? job.unfinished->Serialize() : "");
  PutRehearsal(out, job.rehearsal);
  return out.Take();
}

bool DecodeJob(std::string_view bytes, uint64_t* number, KernelJob* job) {
  ByteReader in(bytes);
  in.PlainField(number);
  job->name = in.Field();
  job->kernel = in.Field();
  job->schedule = in.Field();
  TakeTarget(in, &job->target);
  job->unfinished = TakeUnfinished(in);
  job->rehearsal = TakeRehearsal(in);
  return in.AtEnd();
}

std::string EncodeAnswer(uint64_t number, const absl::StatusOr<drivers::KernelImage>& image) {
  ByteWriter out;
  out.PlainField(number);
  out.PlainField(image.ok());
  if (image.ok()) {
    out.Field(image->Serialize());
  } else {
    PutStatus(out, image.status());
  }
  return out.Take();
}

bool DecodeAnswer(std::string_view bytes, uint64_t number, const KernelJob& job,
                  absl::StatusOr<drivers::KernelImage>* image) {
  ByteReader in(bytes);
  uint64_t answered = 0;
  uint8_t ok = 0;
  in.PlainField(&answered);
  in.PlainField(&ok);
  if (!in.ok() || answered != number || ok > 1) return false;
  if (ok == 1) {
    drivers::KernelImage made = TakeImage(in, job);
    if (in.AtEnd()) *image = std::move(made);
  } else {
    absl::Status status = TakeStatus(in);
    if (in.AtEnd()) *image = std::move(status);
  }
  return in.AtEnd();
}

}  // namespace kiln::workers
